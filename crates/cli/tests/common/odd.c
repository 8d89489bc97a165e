#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    volatile int zero = 0;
    if (strcmp(how, "seven") == 0)
        return 7;
    if (strcmp(how, "halt") == 0)
        __asm__ volatile("hlt");
    if (strcmp(how, "break") == 0)
        __asm__ volatile("int3");
    if (strcmp(how, "undefined") == 0)
        __asm__ volatile("ud2");
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "null") == 0)
        *(volatile int *)(long)zero = 1;
    if (strcmp(how, "divide") == 0)
        return 1 / zero;
    if (strcmp(how, "kill") == 0)
        raise(15);
    if (strcmp(how, "print") == 0)
        return write(1, "0123456789abcdef", 16) != 16;
    if (strcmp(how, "deadlock") == 0) {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&lock);
        pthread_mutex_lock(&lock);
    }
    if (strcmp(how, "idle") == 0) {
        char byte;
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7000)};
        bind(fd, (struct sockaddr *)&address, sizeof address);
        return recv(fd, &byte, 1, 0);
    }
    if (strcmp(how, "spin") == 0)
        for (;;)
            zero++;
    return 0;
}
