/* Two threads that each say something to a peer: `threads chat` asks it how many are there over a connection of its
 * own, `threads log` writes a line to the connection that they share. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int shared;

static int connected(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
    inet_pton(AF_INET, "10.0.0.9", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? fd : -1;
}

static void *chat(void *name) {
    char answer[64];
    int fd = connected();
    ssize_t got = recv(fd, answer, sizeof answer - 1, 0);
    answer[got > 0 ? got : 0] = 0;
    dprintf(1, "%s: %s", (char *)name, answer);
    close(fd);
    return NULL;
}

static void *record(void *name) {
    send(shared, name, strlen(name), 0);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t one, other;
    int chats = argc > 1 && strcmp(argv[1], "chat") == 0;
    void *(*body)(void *) = chats ? chat : record;
    if (!chats)
        shared = connected();
    pthread_create(&one, NULL, body, chats ? "one" : "one\n");
    pthread_create(&other, NULL, body, chats ? "other" : "other\n");
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    if (!chats)
        close(shared);
    return 0;
}
