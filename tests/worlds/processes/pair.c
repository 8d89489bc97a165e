/* Two processes of one host that talk to each other, while another host talks to one of them.
 *
 *     pair serve            answers two connections with its process number
 *     pair ask [ADDRESS]    connects, to the own host where none is named, and ends with 0 if it is answered
 *     pair die              is ended by a signal */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7000, CONNECTIONS = 2, MOST_TRIES = 100 };

static int serve(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || listen(fd, CONNECTIONS) != 0)
        return 2;
    for (int i = 0; i < CONNECTIONS; i++) {
        int client = accept(fd, NULL, NULL);
        pid_t own = getpid();
        if (client < 0 || write(client, &own, sizeof own) != sizeof own)
            return 2;
        close(client);
    }
    puts("served");
    return 0;
}

static int ask(const char *address) {
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    inet_pton(AF_INET, address, &server.sin_addr);
    for (int i = 0; i < MOST_TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&server, sizeof server) == 0) {
            pid_t answer;
            return read(fd, &answer, sizeof answer) == sizeof answer && answer != getpid() ? 0 : 1;
        }
        close(fd);
        usleep(1000);
    }
    return 3;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        return serve();
    if (argc > 1 && strcmp(argv[1], "die") == 0)
        raise(SIGTERM);
    return ask(argc > 2 ? argv[2] : "127.0.0.1");
}
