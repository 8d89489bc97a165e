// Compiled by several versions of clang: clang-NN -g -O1 -fdebug-compilation-dir=. -c -emit-llvm program.c
#include <stdarg.h>
#include <stddef.h>

enum mode { IDLE, BUSY = 7 };
struct item { int key; long values[3]; };
struct big { long words[5]; };
union word { unsigned bits; float number; };
struct server {
    char name[12];
    struct { unsigned count; struct item items[4]; } table;
    enum mode mode;
    union word word;
    struct server *next;
    int low : 3, high : 5;
    int grid[2][3];
};
struct server server = { "main", { 2, { { 1, { 2, 3, 4 } } } }, BUSY, { 1 }, &server };
static _Thread_local int counter = 5;
static const double table[] = { 0.5, 1.25, 3.0 };
long double wide = 1.5L;
int tentative;
__attribute__((weak)) int weak = 3;
int same(void) __attribute__((alias("next")));

int next(void) { return ++counter; }

static int sum(int count, ...) {
    va_list list;
    int total = 0;
    va_start(list, count);
    while (count-- > 0) total += va_arg(list, int);
    va_end(list);
    return total;
}

long take(struct big big, int index) { return big.words[index]; }
struct big give(long seed) { return (struct big){ { seed, seed * 2 } }; }

int choose(int value) {
    switch (value) {
    case 1: return 10;
    case 5: return next();
    case -3: return sum(3, value, 4, 5);
    default: return value > 100 ? sum(1, value) : 0;
    }
}

int jump(int index) {
    static void *targets[] = { &&first, &&second };
    goto *targets[index & 1];
first:
    return 1;
second:
    return choose(2);
}

double mix(double left, float right, long double other) {
    return left * table[1] + right - (double)(other * wide);
}

unsigned long spin(unsigned long *cell, unsigned long value) {
    unsigned long old = __atomic_fetch_add(cell, value, __ATOMIC_SEQ_CST);
    __atomic_compare_exchange_n(cell, &old, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    __asm__ volatile("lock; orl $0,(%%rsp)" ::: "memory");
    __asm__("bsf %1,%0" : "=r"(value) : "r"(value));
    return old + value;
}

unsigned __int128 wider(unsigned __int128 left, unsigned __int128 right) {
    return left * right + ((unsigned __int128)1 << 100);
}

typedef int lanes __attribute__((vector_size(16)));
lanes vector(lanes left, lanes right) { return __builtin_shufflevector(left + right, left, 0, 5, 2, 7); }

int main(int argc, char **argv) {
    struct big big = give(argc);
    server.table.count += (unsigned)choose(argc) + argv[0][0];
    server.table.items[argc & 3].values[1] = take(big, argc);
    return same() + jump(argc);
}
