// Threads that race to execute the program itself, which the run names: the gate is made anew each time.
// options: --program /again=./exec_self
// native: 0
#include "escape.h"
#include <pthread.h>

static void *again(void *number) {
    char text[8];
    sprintf(text, "%d", (int)(long)number);
    char *words[] = {"again", text, 0};
    munmap((void *)0x10000000, PAGE);
    execve("/again", words, words + 2);
    escaped("the program is not there", errno);
    return 0;
}

int main(int argc, char **argv) {
    long number = argc == 2 ? atoi(argv[1]) : 0;
    refused("mmap", raw(SYS_mmap, GATE, PAGE, 7, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (number == 8) return end();
    pthread_t all[3];
    for (int i = 0; i < 3; i++) pthread_create(&all[i], 0, again, (void *)(number + 1));
    if (fork() == 0) again((void *)8);
    again((void *)(number + 1));
    return 1;
}
