// operator new and delete: the plain ones, aligned ones, ones of a class, replaced ones, and failing ones.
// exec:
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

static int balance = 0;

void *operator new(std::size_t size) {
    balance++;
    void *memory = std::malloc(size ? size : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}
void operator delete(void *memory) noexcept {
    if (memory) balance--;
    std::free(memory);
}
void operator delete(void *memory, std::size_t) noexcept { operator delete(memory); }

struct Own {
    static void *operator new(std::size_t size) {
        printf("own new %zu\n", size);
        return ::operator new(size);
    }
    static void operator delete(void *memory) {
        printf("own delete\n");
        ::operator delete(memory);
    }
    char bytes[24];
};
struct alignas(64) Wide {
    char bytes[64];
};
struct Thrower {
    Thrower() { throw 5; }
};

int main() {
    delete new Own;
    {
        std::vector<int> numbers(100, 1);
        printf("balance %d\n", balance);
    }
    printf("balance %d\n", balance);
    Wide *wide = new Wide;
    printf("%d\n", static_cast<int>(reinterpret_cast<std::uintptr_t>(wide) % 64));
    delete wide;
    try {
        delete new Thrower;
    } catch (int) {
        printf("balance %d\n", balance);
    }
    volatile std::size_t huge = std::numeric_limits<std::size_t>::max() / 4;
    try {
        int *many = new int[huge * 2];
        printf("%p\n", static_cast<void *>(many));
    } catch (const std::bad_alloc &error) {
        printf("%s\n", error.what());
    }
    printf("%d\n", new (std::nothrow) int != nullptr);
    alignas(8) unsigned char place[sizeof(int) * 4];
    int *four = new (place) int[4]{1, 2, 3, 4};
    printf("%d\n", four[3]);
}
