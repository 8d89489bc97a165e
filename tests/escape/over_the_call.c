// Maps a file over the page of the instruction that makes the call: its bytes must not run in place of an injected call.
// native: 0
#include "escape.h"

typedef long stub(long, long, long, long, long, long, long);

int main(int argc, char **argv) {
    begin(argc, argv);
    unsigned char *page = mmap((void *)0x70000000, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    must(page == (void *)0x70000000, "memory");
    // mov rax,rdi; mov rdi,rsi; mov rsi,rdx; mov rdx,rcx; mov r10,r8; mov r8,r9; mov r9,[rsp+8]; syscall; ret
    static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d,
                                         0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05, 0xc3};
    const int at = 0x100, call = at + 23;
    memcpy(page + at, code, sizeof code);
    // In its place: two bytes that jump over the rest, and where the call returns to: mov eax,39; syscall; ret.
    static unsigned char file[PAGE];
    memset(file, 0x90, sizeof file);
    static const unsigned char own[] = {0xeb, 0x00, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
    memcpy(file + call, own, sizeof own);
    int fd = open("/code", O_RDWR | O_CREAT, 0777);
    for (int shared = 1; shared <= 2; shared++) {
        pwrite(fd, file, sizeof file, 0);
        long result = ((stub *)(page + at))(SYS_mmap, (long)page, PAGE, 7, shared | MAP_FIXED, fd, 0);
        // Behind the call stand the bytes of the file, which make another one: the model answers it.
        must(result == getpid(), "what stands behind a call");
        must(result >= 1000, "a pid of the real machine");
        memcpy(page + at, code, sizeof code);
    }
    // The same with mremap and munmap of the page.
    unsigned char *other = mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(other, file, PAGE);
    memcpy(page + at, code, sizeof code);
    long result = ((stub *)(page + at))(SYS_mremap, (long)other, PAGE, PAGE, 3, (long)page, 0);
    must(result == getpid(), "what mremap brings");
    catch_faults();
    if (TRY == 0) {
        memcpy(page + at, code, sizeof code);
        ((stub *)(page + at))(SYS_munmap, (long)page, PAGE, 0, 0, 0, 0);
        escaped("the call returned to nowhere", 0);
    }
    return end();
}
