// Objects that outlive processes: System V shared memory, semaphores and queues, message queues, POSIX shared memory.
// native: 0
// exec: 0
#include "escape.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

int main(int argc, char **argv) {
    begin(argc, argv);
    for (int key = 1; key < 20; key++) {
        shmget(key, PAGE, IPC_CREAT | 0666);
        semget(key, 4, IPC_CREAT | 0666);
        msgget(key, IPC_CREAT | 0666);
    }
    int fd = shm_open("/everett-escape", O_CREAT | O_RDWR, 0666);
    if (fd >= 0) ftruncate(fd, PAGE);
    raw(240, (long)"everett-escape", O_CREAT | O_RDWR, 0666, 0, 0, 0);
    mkdir("/tmp", 0777);
    close(open("/tmp/everett-escape", O_CREAT | O_RDWR, 0666));
    mkfifo("/tmp/everett-escape-fifo", 0666);
    return end();
}
