// Exceptions out of callbacks that the C library calls, and jumps beside exceptions.
// exec:
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

static int calls = 0;

static int compare(const void *a, const void *b) {
    if (++calls == 3) throw std::runtime_error("third comparison");
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static std::jmp_buf place;

static void jump(int depth) {
    if (depth == 0) std::longjmp(place, 7);
    jump(depth - 1);
}

int main() {
    int numbers[] = {4, 1, 3, 2, 5, 9, 8};
    try {
        std::qsort(numbers, 7, sizeof(int), compare);
        printf("sorted\n");
    } catch (const std::runtime_error &error) {
        printf("%s\n", error.what());
    }
    std::qsort(numbers, 7, sizeof(int), compare);
    for (int n : numbers) printf("%d ", n);
    printf("\n");
    if (int value = setjmp(place)) {
        printf("jumped %d\n", value);
    } else {
        try {
            jump(3);
        } catch (...) {
            printf("never\n");
        }
    }
    try {
        throw std::string("still works");
    } catch (const std::string &text) {
        printf("%s\n", text.c_str());
    }
}
