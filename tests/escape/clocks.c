// The real time and the real processor: the auxiliary vector, the clock, the counter, cpuid.
// native: 0
// exec: 0
#include "escape.h"
#include <sys/auxv.h>
#include <time.h>

static uint64_t counter(void) {
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    must(getauxval(AT_SYSINFO_EHDR) == 0, "AT_SYSINFO_EHDR");
    must(time(0) < 1600000000, "the real date");
    uint64_t first = counter();
    for (volatile int i = 0; i < 100000; i++) {}
    must(first < 1000000000 && counter() - first < 1000000000, "the real counter");
    uint32_t a = 0, b, c, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
    return end();
}
