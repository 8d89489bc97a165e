/* An echo server over UDP: sends each packet back to where it came from.
 *
 *     server PORT [--match COUNT]
 *
 * With --match it looks first whether the packet begins with one of COUNT words, and says so. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char *const WORDS[] = {"hello", "echo!", "quit?"};
enum { WORDS_KNOWN = 3, WORD_SIZE = 5, MOST_BYTES = 65536 };

static int word_of(const char *packet, ssize_t size, int words) {
    for (int i = 0; i < words; i++)
        if (size >= WORD_SIZE && memcmp(packet, WORDS[i], WORD_SIZE) == 0)
            return i;
    return -1;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s PORT [--match COUNT]\n", argv[0]);
        return 2;
    }
    int words = argc > 3 && strcmp(argv[2], "--match") == 0 ? atoi(argv[3]) : 0;
    if (words < 0 || words > WORDS_KNOWN)
        return 2;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0) {
        perror("socket");
        return 2;
    }
    static char packet[MOST_BYTES];
    int matched[WORDS_KNOWN] = {0};
    for (;;) {
        struct sockaddr_in from;
        socklen_t from_size = sizeof from;
        ssize_t size = recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &from_size);
        if (size < 0) {
            perror("recvfrom");
            return 1;
        }
        int word = word_of(packet, size, words);
        if (word >= 0)
            printf("%s for the %dth time\n", WORDS[word], ++matched[word]);
        sendto(fd, packet, (size_t)size, 0, (struct sockaddr *)&from, from_size);
    }
}
