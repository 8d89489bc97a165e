// Memory is freed twice through two owners, where the input says so.
// run:
// paths: 2
// finding: double-free 18
#include <everett.h>

struct Owner {
    int *numbers = new int[4]();
    ~Owner() { release(); }
    Owner() = default;
    Owner(const Owner &) = default;
    void release();
    bool owns = true;
};

void Owner::release() {
    if (owns)
        delete[] numbers;
}

int main() {
    unsigned char share;
    everett_make_symbolic(&share, sizeof share, "share");
    Owner first;
    if (share > 250) {
        Owner second(first);
    }
    return 0;
}
