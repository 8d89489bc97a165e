// execve: from several threads at once, of real programs, of files in memory, with hostile pointers.
// native: 0
#include "escape.h"
#include <pthread.h>

static char *words[] = {"sleep", "7", 0};

static void *runs(void *unused) {
    for (int i = 0; i < 20; i++) {
        execve("/bin/sleep", words, words + 2);
        execve("/proc/self/exe", words, words + 2);
        execve(real_file, words, words + 2);
        mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return unused;
}

static void threads(long forks) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++) pthread_create(&all[i], 0, runs, 0);
    if (forks && fork() == 0) runs(0);
    runs(0);
    for (int i = 0; i < 4; i++) pthread_join(all[i], 0);
}

static void pointers(long which) {
    static const long places[] = {0, -1, 8, GATE, GATE + PAGE, 1ul << 47, -PAGE, 0x7ffffffff000 - 1};
    long at = places[which];
    refused("execve", raw(SYS_execve, at, at, at, 0, 0, 0));
    refused("execve", raw(SYS_execve, (long)"/bin/sleep", at, at, 0, 0, 0));
    refused("execveat", raw(322, -1, at, at, at, at, 0));
    refused("execveat", raw(322, AT_FDCWD, (long)"/bin/sleep", (long)words, at, 0x1000, 0));
}

static void in_memory(long unused) {
    (void)unused;
    int fd = raw(319, (long)"code", 0, 0, 0, 0, 0);
    if (fd < 0) fd = open("/code", O_RDWR | O_CREAT, 0777);
    // A program for the real kernel: its header, and code that would end with 42.
    static const unsigned char program[] = {
        0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0, 0x78, 0, 0x40, 0, 0, 0, 0, 0,
        64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0,
        0x84, 0, 0, 0, 0, 0, 0, 0, 0x84, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,
        0xbf, 42, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05};
    write(fd, program, sizeof program);
    fchmod(fd, 0777);
    char path[64];
    sprintf(path, "/proc/self/fd/%d", fd);
    refused("fexecve", raw(322, fd, (long)"", (long)words, (long)(words + 2), 0x1000, 0));
    refused("its path", raw(SYS_execve, (long)path, (long)words, (long)(words + 2), 0, 0, 0));
    refused("its name", raw(SYS_execve, (long)"/code", (long)words, (long)(words + 2), 0, 0, 0));
    for (int other = 3; other < 20; other++) refused("others", raw(322, other, (long)"", (long)words, (long)words, 0x1000, 0));
}

int main(int argc, char **argv) {
    // The program itself can be executed, once.
    if (!strcmp(argv[0], "sleep")) return 0;
    begin(argc, argv);
    in_child(threads, 0);
    in_child(threads, 1);
    for (int which = 0; which < 8; which++) in_child(pointers, which);
    in_child(in_memory, 0);
    return end();
}
