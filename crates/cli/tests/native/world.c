#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int turns, alarms;

static void on_signal(int number) { (void)number; alarms++; }

static void *worker(void *arg) {
    long id = (long)arg;
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        turns++;
        char line[32];
        int len = snprintf(line, sizeof line, "%ld:%d ", id, turns);
        write(1, line, len);
        pthread_mutex_unlock(&lock);
        usleep(10 * id);
    }
    return NULL;
}

int main(void) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    signal(SIGUSR1, on_signal);
    pid_t child = fork();
    if (child == 0) {
        char c;
        while (read(ends[1], &c, 1) == 1 && c != 'q') {
            kill(getppid(), SIGUSR1);
            write(ends[1], &c, 1);
        }
        _exit(3);
    }
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
    for (int i = 0; i < 20; i++) {
        char c = 'a' + i % 10;
        while (write(ends[0], &c, 1) != 1) {}
        while (read(ends[0], &c, 1) != 1) {}
    }
    write(ends[0], "q", 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    int status;
    while (waitpid(child, &status, 0) < 0) {}
    printf("turns %d alarms %d status %d\n", turns, alarms > 0, WEXITSTATUS(status));
    return 0;
}
