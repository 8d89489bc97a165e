/* A server whose threads keep the largest number that they were given, and lose it where one is preempted between looking and
 * writing: there is no system call between. Which numbers that is about depends on what the client sends.
 *
 *     largest serve     is sent a number, and is given another one meanwhile
 *     largest ADDRESS   sends any number */
#include <arpa/inet.h>
#include <assert.h>
#include <everett.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7000, OWN = 7 };

static unsigned char largest;

static void offer(unsigned char number) {
    if (number > largest)
        largest = number;
}

static void *work(void *arg) {
    (void)arg;
    offer(OWN);
    return 0;
}

static int serve(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    unsigned char number;
    pthread_t thread;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0 || recv(fd, &number, 1, 0) != 1)
        return 2;
    pthread_create(&thread, 0, work, 0);
    offer(number);
    pthread_join(thread, 0);
    assert(largest >= number && largest >= OWN);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 9;
    if (strcmp(argv[1], "serve") == 0)
        return serve();
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    there.sin_addr.s_addr = inet_addr(argv[1]);
    unsigned char number;
    everett_make_symbolic(&number, 1, "number");
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    return sendto(fd, &number, 1, 0, (struct sockaddr *)&there, sizeof there) != 1;
}
