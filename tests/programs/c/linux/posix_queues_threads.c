// exec:
// mq_notify with SIGEV_THREAD: a thread is started once for each registration, and for none that ends before.
#include "io_cases.h"
#include <mqueue.h>
#include <semaphore.h>

static sem_t started;
static volatile int with;

static void start(union sigval value) {
  with = value.sival_int;
  sem_post(&started);
}

static void show_notice(mqd_t queue) {
  char text[200];
  lseek(queue, 0, SEEK_SET);
  long got = read(queue, text, sizeof text - 1);
  text[got > 0 ? got : 0] = 0;
  char *pid = strstr(text, "NOTIFY_PID:");
  printf("%.*s%d\n", (int)(pid - text), text, atoi(pid + 11) == getpid());
}

// The thread may run before its sender does, so only the waiting side resets what it left.
static int started_with(void) {
  while (sem_wait(&started) < 0)
    continue;
  return with;
}

static int starts_nothing(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  return sem_timedwait(&started, &until) < 0 && errno == ETIMEDOUT;
}

int main(void) {
  struct mq_attr form = {0, 4, 16, 0};
  char text[16];
  sem_init(&started, 0, 0);
  mq_unlink("/everett-threads");
  mqd_t queue = mq_open("/everett-threads", O_CREAT | O_RDWR, 0600, &form);
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = start};
  event.sigev_value.sival_int = 77;
  SHOW(mq_notify(queue, &event));
  show_notice(queue);
  SHOW(mq_notify(queue, &event));
  SHOW(mq_send(queue, "a", 1, 0));
  SHOW(started_with());
  show_notice(queue);
  // Once only, and only for a message that arrives at an empty queue.
  SHOW(mq_receive(queue, text, sizeof text, 0));
  SHOW(mq_send(queue, "b", 1, 0));
  event.sigev_value.sival_int = 78;
  SHOW(mq_notify(queue, &event));
  SHOW(mq_send(queue, "c", 1, 0));
  SHOW(starts_nothing());
  mq_receive(queue, text, sizeof text, 0);
  mq_receive(queue, text, sizeof text, 0);
  SHOW(mq_send(queue, "d", 1, 0));
  SHOW(started_with());
  // A registration that ends starts nothing.
  mq_receive(queue, text, sizeof text, 0);
  SHOW(mq_notify(queue, &event));
  SHOW(mq_notify(queue, NULL));
  show_notice(queue);
  SHOW(mq_send(queue, "e", 1, 0));
  SHOW(starts_nothing());
  mq_receive(queue, text, sizeof text, 0);
  // So does one of a process that closes the queue.
  mqd_t other = mq_open("/everett-threads", O_RDWR);
  SHOW(mq_notify(queue, &event));
  SHOW(mq_close(other));
  show_notice(queue);
  SHOW(mq_send(queue, "f", 1, 0));
  SHOW(starts_nothing());
  SHOW(lseek(queue, 0, SEEK_END));
  SHOW(lseek(queue, -1, SEEK_SET));
  SHOW(lseek(queue, 7, SEEK_SET));
  SHOW(lseek(queue, 2, SEEK_CUR));
  // What the system call wants: a netlink socket, and bytes to send it.
  char bytes[32] = {1};
  int sockets[2];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets);
  mq_receive(queue, text, sizeof text, 0);
  struct sigevent raw = {.sigev_notify = SIGEV_THREAD, .sigev_signo = sockets[0]};
  raw.sigev_value.sival_ptr = bytes;
  SHOW(syscall(SYS_mq_notify, queue, &raw));
  raw.sigev_signo = 1000;
  SHOW(syscall(SYS_mq_notify, queue, &raw));
  raw.sigev_signo = socket(AF_NETLINK, SOCK_RAW, 0);
  SHOW(syscall(SYS_mq_notify, queue, &raw));
  SHOW(mq_send(queue, "g", 1, 0));
  SHOW(recv(raw.sigev_signo, bytes, sizeof bytes, 0));
  printf("%d %d\n", bytes[0], bytes[31]);
  mq_receive(queue, text, sizeof text, 0);
  SHOW(syscall(SYS_mq_notify, queue, &raw));
  SHOW(mq_close(queue));
  SHOW(recv(raw.sigev_signo, bytes, sizeof bytes, MSG_DONTWAIT));
  printf("%d %d\n", bytes[0], bytes[31]);
  mq_unlink("/everett-threads");
  return 0;
}
