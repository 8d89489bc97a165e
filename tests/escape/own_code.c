// Self-modifying code: calls written into memory, over libc, over breakpoints, and across pages.
// native: 0
#include "escape.h"

typedef long code(long, long, long, long);

static void over_libc(long rights) {
    // The pages of malloc and free become our own bytes, each of them an instruction that makes a call.
    void *functions[] = {malloc, free, calloc, realloc, write, exit};
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
        unsigned long page = (unsigned long)functions[i] & -PAGE;
        raw(SYS_mprotect, page, PAGE, rights, 0, 0, 0);
    }
    unsigned char *at = (unsigned char *)malloc;
    for (int i = 1; i < 64; i += 2) at[i] = 0x05, at[i + 1] = 0x0f;
    malloc(100);
}

static void replaced(long unused) {
    (void)unused;
    unsigned long page = (unsigned long)malloc & -PAGE;
    raw(SYS_mmap, page, PAGE, 7, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < PAGE; i += 2) ((unsigned char *)page)[i] = 0x0f, ((unsigned char *)page)[i + 1] = 0x05;
    ((code *)malloc)(100, 0, 0, 0);
}

static void breakpoints(long byte) {
    unsigned char *page = mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(page, byte, PAGE);
    page[PAGE - 1] = 0xc3;
    ((code *)page)(59, (long)"/bin/sleep", 0, 0);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    unsigned char *pages = mmap(0, 2 * PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // mov eax, 39; syscall; ret, with the call across two pages.
    static const unsigned char bytes[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3};
    for (int i = 0; i < 8; i++) {
        memcpy(pages + PAGE - i, bytes, sizeof bytes);
        must(((code *)(pages + PAGE - i))(0, 0, 0, 0) == getpid(), "a call of self-made code");
    }
    // The same bytes, changed between two calls: getppid.
    pages[PAGE + 1] = 110;
    memcpy(pages + PAGE, bytes, sizeof bytes);
    pages[PAGE + 1] = 110;
    must(((code *)(pages + PAGE))(0, 0, 0, 0) == getppid(), "a call of changed code");
    in_child(over_libc, 7);
    in_child(over_libc, 3);
    in_child(replaced, 0);
    static const int all[] = {0xcc, 0xf4, 0xcd, 0xf1, 0x9d, 0xce, 0xcf, 0x0f, 0xf0};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) in_child(breakpoints, all[i]);
    return end();
}
