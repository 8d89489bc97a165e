// Code in 32-bit mode: int 0x80, sysenter and syscall from a 32-bit code segment.
// native: 0
#include "escape.h"

// Runs 32-bit code at a low address and comes back through a far return.
static void in_32_bits(const unsigned char *code, int size) {
    unsigned char *page = mmap((void *)0x20000000, 4 * PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memcpy(page, code, size);
    // What stands where the low half of the gate's address leads: int 0x80; jmp back to it.
    unsigned char *alias = mmap((void *)(GATE & 0xffffffff), PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (alias != MAP_FAILED) memcpy(alias, "\xcd\x80\xeb\xfc", 4);
    strcpy((char *)page + 0x800, "/bin/sleep");
    uint64_t stack;
    struct { uint32_t offset; uint16_t segment; } __attribute__((packed)) target = {0x20000000, 0x23};
    __asm__ volatile("mov %%rsp, %0\n mov $0x20003ff0, %%esp\n ljmp *%1\n" : "=m"(stack) : "m"(target) : "memory");
}

static void attempt(long way) {
    // mov eax, number; mov ebx, 0x20000800; xor ecx, ecx; xor edx, edx; the call; jmp self
    static const unsigned char calls[3][2] = {{0xcd, 0x80}, {0x0f, 0x34}, {0x0f, 0x05}};
    // execve, open, mmap2, fork, kill of 32-bit programs; mmap, execve, clone of 64-bit ones.
    static const unsigned char numbers[] = {11, 5, 192, 2, 37, 9, 59, 56};
    unsigned char code[256], *at = code;
    for (unsigned i = 0; i < sizeof numbers; i++) {
        const unsigned char part[] = {0xb8, numbers[i], 0, 0, 0, 0xbb, 0, 8, 0, 0x20, 0x31, 0xc9, 0x31, 0xd2,
                                      calls[way][0], calls[way][1]};
        memcpy(at, part, sizeof part);
        at += sizeof part;
    }
    // int3
    *at++ = 0xcc;
    in_32_bits(code, at - code);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    for (int way = 0; way < 3; way++) in_child(attempt, way);
    return end();
}
