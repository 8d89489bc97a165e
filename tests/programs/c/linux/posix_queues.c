// exec:
#include "memory_cases.h"
#include <mqueue.h>
#include <poll.h>
#include <time.h>

static mqd_t queue;
static char text[9000];
static volatile sig_atomic_t told;

static void receive(void) {
  unsigned priority = 77;
  memset(text, 0, sizeof text);
  errno = 0;
  long got = mq_receive(queue, text, sizeof text, &priority);
  printf("receive: %ld %s %u %s\n", got, error_name(got < 0 ? errno : 0), priority, text);
}

static void note(int signal) { told = signal; }

static siginfo_t info;

static void note_info(int signal, siginfo_t *given, void *context) {
  (void)context;
  told = signal;
  info = *given;
}

// The signal tells who sent the message, and carries the value of the registration.
static void sender(void) {
  struct sigaction action = {.sa_sigaction = note_info, .sa_flags = SA_SIGINFO};
  sigaction(SIGUSR2, &action, 0);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2, .sigev_value.sival_ptr = text + 5};
  SHOW(mq_notify(queue, &event));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    setuid(1234);
    mq_send(queue, "of another", 11, 0);
    _exit(0);
  }
  while (waitpid(child, 0, 0) != child);
  printf("told %d code %d %d", told == SIGUSR2, info.si_code, info.si_code == SI_MESGQ);
  printf(" pid %d uid %u value %d\n", info.si_pid == child, info.si_uid, info.si_value.sival_ptr == text + 5);
  receive();
  event.sigev_signo = 65;
  SHOW(mq_notify(queue, &event));
}

int main(void) {
  const char *name = "/everett_queue";
  mq_unlink(name);
  SHOW(mq_unlink(name));
  TELL(mq_open(name, O_RDWR));
  struct mq_attr attributes = {.mq_maxmsg = 3, .mq_msgsize = 20};
  queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
  printf("%d\n", queue >= 0);
  TELL(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes));
  SHOW(mq_getattr(queue, &attributes));
  printf("%ld %ld %ld %ld\n", attributes.mq_flags, attributes.mq_maxmsg, attributes.mq_msgsize, attributes.mq_curmsgs);
  SHOW(mq_send(queue, "low", 4, 1));
  SHOW(mq_send(queue, "high", 5, 9));
  SHOW(mq_send(queue, "low too", 8, 1));
  mq_getattr(queue, &attributes);
  printf("%ld\n", attributes.mq_curmsgs);
  struct timespec past = {1, 0}, bad = {1, -1};
  SHOW(mq_timedsend(queue, "full", 5, 0, &past));
  SHOW(mq_timedsend(queue, "full", 5, 0, &bad));
  SHOW(mq_send(queue, "much too long for this queue", 28, 0));
  SHOW(mq_send(queue, "x", 1, 40000));
  SHOW(mq_receive(queue, text, 5, 0));
  receive();
  receive();
  receive();
  SHOW(mq_timedreceive(queue, text, sizeof text, 0, &past));
  attributes.mq_flags = O_NONBLOCK;
  struct mq_attr old;
  SHOW(mq_setattr(queue, &attributes, &old));
  printf("%ld\n", old.mq_flags);
  receive();
  attributes.mq_flags = 0;
  mq_setattr(queue, &attributes, &old);
  printf("%d\n", old.mq_flags == O_NONBLOCK);

  // Polling, and how it was opened.
  struct pollfd poller = {queue, POLLIN | POLLOUT, 0};
  SHOW(poll(&poller, 1, 0));
  printf("%d\n", poller.revents);
  mqd_t writer = mq_open(name, O_WRONLY);
  SHOW(mq_send(writer, "only", 5, 0));
  SHOW(mq_receive(writer, text, sizeof text, 0));
  poll(&poller, 1, 0);
  printf("%d\n", poller.revents);
  mqd_t reader = mq_open(name, O_RDONLY);
  SHOW(mq_send(reader, "x", 1, 0));
  SHOW(mq_receive(reader, text, sizeof text, 0));

  // Between processes.
  fflush(stdout);
  if (fork() == 0) {
    receive();
    fflush(stdout);
    mq_send(queue, "answer", 7, 3);
    _exit(0);
  }
  mq_send(queue, "question", 9, 5);
  wait(0);
  receive();

  // Being told.
  signal(SIGUSR1, note);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  SHOW(mq_notify(queue, &event));
  SHOW(mq_notify(queue, &event));
  mq_send(queue, "first", 6, 0);
  printf("told %d\n", told == SIGUSR1);
  told = 0;
  mq_send(queue, "second", 7, 0);
  printf("told %d\n", told == SIGUSR1);
  receive();
  receive();
  SHOW(mq_notify(queue, &event));
  SHOW(mq_notify(queue, 0));
  mq_send(queue, "third", 6, 0);
  printf("told %d\n", told == SIGUSR1);
  receive();

  sender();

  // Whoever closes a descriptor of the queue is not told any more.
  SHOW(mq_notify(queue, &event));
  SHOW(mq_notify(queue, &event));
  SHOW(mq_close(mq_open(name, O_RDWR)));
  SHOW(mq_notify(queue, &event));
  SHOW(mq_notify(queue, 0));

  // A queue without a name lives as long as it is open.
  SHOW(mq_unlink(name));
  TELL(mq_open(name, O_RDWR));
  SHOW(mq_send(queue, "still", 6, 0));
  receive();
  SHOW(mq_close(queue));
  SHOW(mq_close(queue));
  SHOW(mq_send(queue, "x", 1, 0));
  attributes.mq_maxmsg = 0;
  TELL(mq_open(name, O_RDWR | O_CREAT, 0600, &attributes));
  TELL(mq_open("/with/slash", O_RDWR | O_CREAT, 0600, 0));
  int pipes[2];
  pipe(pipes);
  SHOW(mq_send(pipes[1], "x", 1, 0));
  return 0;
}
