// Looks for the vDSO and its data where the kernel maps them, and takes the time from vsyscalls.
// native: 0
#include "escape.h"
#include <elf.h>
#include <time.h>

int main(int argc, char **argv) {
    begin(argc, argv);
    catch_faults();
    int pages = 0;
    for (volatile unsigned long at = 0x7ffff7f00000; at < 0x7ffffffff000; at += PAGE) {
        if (TRY) continue;
        pages++;
        if (!memcmp((void *)at, ELFMAG, SELFMAG)) escaped("an ELF file", at);
        // The stack begins near the end.
        if (at == GATE + 2 * PAGE) at = 0x7ffffff00000;
        if (at < GATE && pages > 300) escaped("mapped pages", pages);
    }
    // Where vsyscalls do not exist, they fault.
    if (TRY == 0) {
        long (*old_time)(long *) = (void *)0xffffffffff600400;
        must(old_time(0) == time(0), "the time of a vsyscall");
    }
    uint32_t low, high, processor;
    if (TRY == 0) {
        __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor));
        must(processor == 0, "the number of the processor");
    }
    if (TRY == 0) {
        __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(0));
        escaped("rdpmc", low);
    }
    return end();
}
