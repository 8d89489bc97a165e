// What a thread hears of through the kernel, another one did before.
// run: --check-races --scheduler bounded:1 --no-tests
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIPE, POLLED, EVENT, SOCKET, QUEUE, SEMAPHORE, SIGNAL, WAYS };

static int data[WAYS], ends[2], polled[2], event, sockets[2], queue, semaphore;
static struct {
  long kind;
  char byte;
} message = {1, 0};

static void *write_all(void *arg) {
  pthread_t *reader = arg;
  uint64_t one = 1;
  struct sembuf up = {0, 1, 0};
  data[PIPE] = 1;
  write(ends[1], "x", 1);
  data[POLLED] = 1;
  write(polled[1], "x", 1);
  data[EVENT] = 1;
  write(event, &one, sizeof one);
  data[SOCKET] = 1;
  send(sockets[1], "x", 1, 0);
  data[QUEUE] = 1;
  msgsnd(queue, &message, 1, 0);
  data[SEMAPHORE] = 1;
  semop(semaphore, &up, 1);
  data[SIGNAL] = 1;
  pthread_kill(*reader, SIGUSR1);
  return 0;
}

int main(void) {
  pthread_t writer, own = pthread_self();
  char byte;
  uint64_t count;
  int sum = 0, signal;
  struct sembuf down = {0, -1, 0};
  struct {
    long kind;
    char byte;
  } got;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, 0);
  pipe(ends);
  pipe(polled);
  event = eventfd(0, 0);
  socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
  queue = msgget(IPC_PRIVATE, 0600);
  semaphore = semget(IPC_PRIVATE, 1, 0600);
  struct pollfd waited = {polled[0], POLLIN, 0};
  pthread_create(&writer, 0, write_all, &own);
  read(ends[0], &byte, 1);
  sum += data[PIPE];
  poll(&waited, 1, -1);
  sum += data[POLLED];
  read(event, &count, sizeof count);
  sum += data[EVENT];
  recv(sockets[0], &byte, 1, 0);
  sum += data[SOCKET];
  msgrcv(queue, &got, 1, 0, 0);
  sum += data[QUEUE];
  semop(semaphore, &down, 1);
  sum += data[SEMAPHORE];
  sigwait(&set, &signal);
  sum += data[SIGNAL];
  pthread_join(writer, 0);
  return sum != WAYS;
}
