/* A register of names over UDP. A packet is a command, 'S'et or 'G'et, the length of a key, the key, and for 'S' the length
 * of a value and the value. The answer is the value, or '?'.
 *
 *     server PORT
 *
 * The mistake: lengths in packets are believed. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_BYTES = 16, MOST_ENTRIES = 8 };

struct entry {
    unsigned char key_size, value_size;
    unsigned char key[MOST_BYTES], value[MOST_BYTES];
};

static struct entry entries[MOST_ENTRIES];
static int used;

static struct entry *find(const struct entry *wanted) {
    for (int i = 0; i < used; i++)
        if (entries[i].key_size == wanted->key_size && memcmp(entries[i].key, wanted->key, wanted->key_size) == 0)
            return &entries[i];
    return NULL;
}

static size_t handle(const unsigned char *packet, size_t size, unsigned char *answer) {
    struct entry asked = {0};
    if (size < 2)
        return 0;
    asked.key_size = packet[1];
    memcpy(asked.key, packet + 2, asked.key_size);
    struct entry *found = find(&asked);
    if (packet[0] == 'G') {
        if (found == NULL) {
            answer[0] = '?';
            return 1;
        }
        memcpy(answer, found->value, found->value_size);
        return found->value_size;
    }
    if (packet[0] == 'S') {
        const unsigned char *value = packet + 2 + asked.key_size;
        asked.value_size = value[0];
        memcpy(asked.value, value + 1, asked.value_size);
        if (found == NULL && used < MOST_ENTRIES)
            found = &entries[used++];
        if (found != NULL)
            *found = asked;
        memcpy(answer, asked.value, asked.value_size);
        return asked.value_size;
    }
    return 0;
}

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "7000"))};
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0) {
        perror("socket");
        return 2;
    }
    for (;;) {
        unsigned char packet[64] = {0}, answer[MOST_BYTES] = {0};
        struct sockaddr_in from;
        socklen_t from_size = sizeof from;
        ssize_t size = recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &from_size);
        if (size < 0)
            return 1;
        size_t answer_size = handle(packet, (size_t)size, answer);
        sendto(fd, answer, answer_size, 0, (struct sockaddr *)&from, from_size);
    }
}
