/* A server that takes long to listen, how long is symbolic, and clients that connect at once. Who asks too early is refused. */
#include <arpa/inet.h>
#include <everett.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7000 };

static struct sockaddr_in at(unsigned address) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    here.sin_addr.s_addr = address;
    return here;
}

/* Gets ready: by sleeping, by making system calls, or not at all. */
static void get_ready(void) {
    unsigned char how;
    everett_make_symbolic(&how, 1, "how");
    if (how == 1)
        usleep(30000);
    else if (how == 2)
        for (int call = 0; call < 40; call++)
            getppid();
}

static int serve(int clients) {
    struct sockaddr_in here = at(INADDR_ANY);
    int reuse = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    get_ready();
    if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || listen(fd, 4) != 0)
        return 2;
    for (int number = 1; number <= clients; number++) {
        char byte = (char)number;
        int client = accept(fd, 0, 0);
        if (client < 0 || write(client, &byte, 1) != 1)
            return 3;
        close(client);
    }
    return 0;
}

/* Exits with its number among those that the server has greeted. */
static int greet(const char *server, int patient) {
    for (;;) {
        struct sockaddr_in there = at(inet_addr(server));
        char byte = 0;
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&there, sizeof there) == 0 && read(fd, &byte, 1) == 1)
            return byte;
        if (!patient)
            return 100;
        close(fd);
        usleep(5000);
    }
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 9;
    if (strcmp(argv[1], "serve") == 0)
        return serve(atoi(argv[2]));
    return greet(argv[2], strcmp(argv[1], "retry") == 0);
}
