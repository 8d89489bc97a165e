// Function-try-blocks of functions and constructors, and exceptions out of members' constructors.
// exec:
#include <cstdio>
#include <new>

struct Member {
    int number;
    explicit Member(int n) : number(n) {
        printf("member %d\n", n);
        if (n == 2) throw n;
    }
    ~Member() { printf("~member %d\n", number); }
};
struct Parent {
    ~Parent() { printf("~parent\n"); }
};
struct Child : Parent {
    Member one;
    Member two;
    explicit Child(int second) try : one(1), two(second) {
        printf("child\n");
    } catch (int value) {
        printf("constructor failed with %d\n", value);
        // It is thrown again at the end.
    }
    ~Child() { printf("~child\n"); }
};

static int guarded(int second) try {
    Child child(second);
    return 0;
} catch (int value) {
    return value;
}

struct Array {
    static int built;
    Array() {
        if (++built == 3) throw "array";
        printf("element %d\n", built);
    }
    ~Array() { printf("~element %d\n", built); }
};
int Array::built = 0;

int main() {
    printf("%d\n", guarded(3));
    printf("%d\n", guarded(2));
    try {
        Array *array = new Array[5];
        delete[] array;
    } catch (const char *text) {
        printf("%s\n", text);
    }
    void *place = operator new(sizeof(Member));
    Member *member = new (place) Member(9);
    member->~Member();
    operator delete(place);
}
