/* A client of memcached: stores a value, sends a command of which some bytes are symbolic, and reads what comes back.
 *
 *     client ADDRESS PORT text LENGTH     a command of the text protocol on the key `a`: LENGTH symbolic bytes and ` a`
 *     client ADDRESS PORT binary LENGTH   a header of the binary protocol, of which the first LENGTH bytes behind the
 *                                         magic one are symbolic, without a body
 *     client ADDRESS PORT set             stores the value, asks for it, and says whether it came back
 *
 * Exit codes: 0 if all went as it should (whatever was answered), 1 if the connection broke, 2 if there was none,
 * 3 if a value that was stored did not come back. */
#include <arpa/inet.h>
#include <everett.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connected_to(const char *address, const char *port) {
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || inet_pton(AF_INET, address, &server.sin_addr) != 1
        || connect(fd, (struct sockaddr *)&server, sizeof server) != 0)
        return -1;
    return fd;
}

static int send_all(int fd, const void *bytes, size_t size) {
    return send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Reads until the answer ends like this: 1; until the connection does: 0. */
static int answered(int fd, char *answer, size_t room, const char *end) {
    size_t size = 0, length = strlen(end);
    while (size + 1 < room) {
        ssize_t got = recv(fd, answer + size, room - 1 - size, 0);
        if (got <= 0)
            return 0;
        size += (size_t)got;
        answer[size] = 0;
        if (size >= length && memcmp(answer + size - length, end, length) == 0)
            return 1;
    }
    return 0;
}

/* Sends the last command, closes this side, and reads to the end. */
static int last_command(int fd, const void *bytes, size_t size) {
    char answer[4096];
    if (!send_all(fd, bytes, size))
        return 1;
    shutdown(fd, SHUT_WR);
    ssize_t got;
    while ((got = recv(fd, answer, sizeof answer, 0)) > 0)
        ;
    return got == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s ADDRESS PORT text LENGTH | binary LENGTH | set\n", argv[0]);
        return 2;
    }
    int fd = connected_to(argv[1], argv[2]);
    if (fd < 0) {
        perror("connect");
        return 2;
    }
    static const char set[] = "set a 0 0 1\r\nx\r\n", get[] = "get a\r\n";
    static const char value[] = "VALUE a 0 1\r\nx\r\nEND\r\n";
    size_t length = argc > 4 ? (size_t)atoi(argv[4]) : 0;
    char answer[256];
    if (strcmp(argv[3], "set") == 0) {
        if (!send_all(fd, set, sizeof set - 1) || !answered(fd, answer, sizeof answer, "\r\n"))
            return 1;
        int stored = strcmp(answer, "STORED\r\n") == 0;
        if (!send_all(fd, get, sizeof get - 1) || !answered(fd, answer, sizeof answer, "\r\n"))
            return 1;
        printf("%s", answer);
        return stored && strcmp(answer, value) != 0 ? 3 : 0;
    }
    if (strcmp(argv[3], "text") == 0 && length <= 32) {
        char command[64];
        everett_make_symbolic(command, length, "command");
        memcpy(command + length, " a\r\n", 4);
        if (!send_all(fd, set, sizeof set - 1) || !answered(fd, answer, sizeof answer, "STORED\r\n"))
            return 1;
        return last_command(fd, command, length + 4);
    }
    if (strcmp(argv[3], "binary") == 0 && length < 24) {
        unsigned char command[24] = {0x80};
        everett_make_symbolic(command + 1, length, "command");
        return last_command(fd, command, sizeof command);
    }
    return 2;
}
