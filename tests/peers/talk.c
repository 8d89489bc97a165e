/* Talks to a peer as its arguments say, and prints what it hears:
 *
 *     talk ADDRESS PORT tcp|udp WORD ...
 *     talk PATH 0 unix WORD ...
 *
 *     +          connects again; what follows is about that connection
 *     =N         what follows is about connection N
 *     >TEXT      sends TEXT and a newline
 *     ?A|B|C     sends one of these texts: all are explored
 *     ?SIZE      (a number) sends so many bytes that may be anything
 *     <          reads to the end of a line and prints it
 *     .          reads to the end of the stream, and prints how many bytes there were
 *     ~MS        waits at most so long for something to read, and prints whether it came
 *     -          sends the end of the stream
 *     x          closes the connection
 *     !TEXT      fails if the last line was TEXT */
#include <arpa/inet.h>
#include <errno.h>
#include <everett.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char line[4096];

static int connected(char **where, int is_udp) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(where[1]))};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int is_unix = inet_pton(AF_INET, where[0], &to.sin_addr) != 1;
    strcpy(path.sun_path, where[0]);
    int fd = socket(is_unix ? AF_UNIX : AF_INET, is_udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    struct sockaddr *address = is_unix ? (struct sockaddr *)&path : (struct sockaddr *)&to;
    if (fd >= 0 && connect(fd, address, is_unix ? sizeof path : sizeof to) == 0)
        return fd;
    printf("cannot connect: %s\n", strerror(errno));
    return -1;
}

static void send_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0) {
            printf("cannot send: %s\n", strerror(errno));
            return;
        }
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void send_line(int fd, const char *text, size_t size) {
    char whole[4096];
    memcpy(whole, text, size);
    whole[size] = '\n';
    send_all(fd, whole, size + 1);
}

static void send_one_of(int fd, const char *texts) {
    uint32_t count = 1;
    for (const char *at = texts; *at; at++)
        count += *at == '|';
    uint32_t picked = everett_choose(count, "text");
    while (picked--)
        texts = strchr(texts, '|') + 1;
    send_line(fd, texts, strcspn(texts, "|"));
}

static void read_line(int fd, int is_udp) {
    size_t got = 0;
    do {
        ssize_t count = recv(fd, line + got, is_udp ? sizeof line - 1 : 1, 0);
        if (count <= 0) {
            printf("%s\n", count == 0 ? "end" : strerror(errno));
            line[got] = 0;
            return;
        }
        got += (size_t)count;
    } while (line[got - 1] != '\n' && got + 1 < sizeof line);
    line[got - (line[got - 1] == '\n')] = 0;
    printf("heard %s\n", line);
}

static void read_all(int fd) {
    static char bytes[1 << 16];
    size_t total = 0;
    ssize_t count;
    while ((count = recv(fd, bytes, sizeof bytes, 0)) > 0)
        total += (size_t)count;
    printf("%zu bytes, %s\n", total, count == 0 ? "end" : strerror(errno));
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    int is_udp = strcmp(argv[3], "udp") == 0, fds[16], count = 0, at = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 4; i < argc; i++) {
        const char *word = argv[i];
        if (*word == '+') {
            at = count;
            if ((fds[count++] = connected(argv + 1, is_udp)) < 0)
                return 3;
        } else if (*word == '=') {
            at = atoi(word + 1);
        } else if (*word == '>') {
            send_line(fds[at], word + 1, strlen(word + 1));
        } else if (*word == '?' && strchr(word, '|')) {
            send_one_of(fds[at], word + 1);
        } else if (*word == '?') {
            char bytes[64];
            size_t size = (size_t)atoi(word + 1);
            everett_make_symbolic(bytes, size, "bytes");
            send_line(fds[at], bytes, size);
        } else if (*word == '<') {
            read_line(fds[at], is_udp);
        } else if (*word == '.') {
            read_all(fds[at]);
        } else if (*word == '~') {
            struct pollfd wanted = {.fd = fds[at], .events = POLLIN};
            printf("%s\n", poll(&wanted, 1, atoi(word + 1)) ? "something" : "nothing");
        } else if (*word == '-') {
            shutdown(fds[at], SHUT_WR);
        } else if (*word == 'x') {
            close(fds[at]);
        } else if (*word == '!') {
            everett_assert(strcmp(line, word + 1) != 0);
        }
    }
    return 0;
}
