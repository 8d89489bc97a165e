/* A client of redis that takes five steps, each one of four commands on a counter and a list, and checks after each
 * that what redis says is what a plain model says. */
#include <arpa/inet.h>
#include <everett.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 5 };

/* Sends a command and reads one line of the answer. */
static long command(int fd, const char *text, char *kind) {
    char answer[128];
    size_t got = 0, size = strlen(text);
    if (write(fd, text, size) != (ssize_t)size)
        exit(3);
    do {
        ssize_t count = read(fd, answer + got, sizeof answer - 1 - got);
        if (count <= 0)
            exit(3);
        got += (size_t)count;
        answer[got] = 0;
    } while (!strstr(answer, "\r\n"));
    *kind = answer[0];
    return atol(answer + 1);
}

int main(void) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *redis;
    char kind;
    if (getaddrinfo("redis", "6379", &hints, &redis) != 0)
        return 2;
    int fd = socket(redis->ai_family, redis->ai_socktype, 0);
    if (fd < 0 || connect(fd, redis->ai_addr, redis->ai_addrlen) != 0)
        return 2;
    /* The same redis serves all paths: each begins with an empty one. */
    command(fd, "FLUSHALL\r\n", &kind);
    long counter = 0, length = 0;
    for (int i = 0; i < STEPS; i++) {
        switch (everett_choose(4, "command")) {
        case 0:
            everett_assert(command(fd, "INCR counter\r\n", &kind) == ++counter && kind == ':');
            break;
        case 1:
            everett_assert(command(fd, "DECR counter\r\n", &kind) == --counter && kind == ':');
            break;
        case 2:
            everett_assert(command(fd, "RPUSH list x\r\n", &kind) == ++length && kind == ':');
            break;
        case 3:
            everett_assert(command(fd, "LTRIM list 1 -1\r\n", &kind) == 0 && kind == '+');
            length -= length > 0;
            break;
        }
    }
    everett_assert(command(fd, "LLEN list\r\n", &kind) == length);
    close(fd);
    printf("counter %ld, list of %ld\n", counter, length);
    return 0;
}
