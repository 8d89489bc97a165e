// dynamic_cast and typeid, over single, multiple and virtual inheritance.
// exec:
#include <cstdio>
#include <typeinfo>

struct Root {
    int root = 1;
    virtual ~Root() {}
    virtual int sum() { return root; }
};
struct Left : virtual Root {
    int left = 2;
    int sum() override { return root + left; }
};
struct Right : virtual Root {
    int right = 3;
    virtual int extra() { return right; }
};
struct Bottom : Left, Right {
    int bottom = 4;
    int sum() override { return root + left + right + bottom; }
    int extra() override { return 10 * right; }
};
struct Alone {
    virtual ~Alone() {}
};
struct Both : Alone, Right {};

int main() {
    Bottom bottom;
    Both both;
    Root *roots[] = {&bottom, &both, new Left, new Root};
    for (Root *root : roots) {
        Left *left = dynamic_cast<Left *>(root);
        Right *right = dynamic_cast<Right *>(root);
        Alone *alone = dynamic_cast<Alone *>(root);
        Bottom *down = dynamic_cast<Bottom *>(root);
        printf("%d %d %d %d sum %d", left != nullptr, right != nullptr, alone != nullptr, down != nullptr, root->sum());
        if (right) printf(" extra %d", right->extra());
        printf(" %s %d %d\n", typeid(*root).name(), typeid(*root) == typeid(Bottom), dynamic_cast<void *>(root) == root);
    }
    try {
        Alone &wrong = dynamic_cast<Alone &>(static_cast<Root &>(bottom));
        printf("%p\n", static_cast<void *>(&wrong));
    } catch (const std::bad_cast &error) {
        printf("%s\n", error.what());
    }
    try {
        Root *nothing = nullptr;
        printf("%s\n", typeid(*nothing).name());
    } catch (const std::bad_typeid &error) {
        printf("%s\n", error.what());
    }
    Alone *alone = &both;
    Right *across = dynamic_cast<Right *>(alone);
    printf("%d %d\n", across->extra(), across->sum());
    delete roots[2];
    delete roots[3];
}
