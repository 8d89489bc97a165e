// exec:
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int ran;
static int pipes[2];
static void note(int signal) {
  ran++;
  (void)signal;
}
static void feed(int signal) {
  if (ran++ == 0)
    write(pipes[1], "z", 1);
  (void)signal;
}

static void set(void (*handler)(int), int flags) {
  struct sigaction action = {0};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGALRM, &action, 0);
  ran = 0;
}

// Again and again, until the wait is over: the first one may come before it.
static void soon(void) {
  struct itimerval timer = {{0, 20000}, {0, 20000}};
  setitimer(ITIMER_REAL, &timer, 0);
}
static void no_more(void) {
  struct itimerval timer = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, 0);
}

static void result(const char *what, long value) {
  int error = errno;
  no_more();
  printf("%s %ld %s, handlers %d\n", what, value, value < 0 ? strerror(error) : "", ran > 0);
}

static int gate[2];
static void let_go(int signal) {
  if (ran++ == 0)
    write(gate[1], "g", 1);
  (void)signal;
}

int main(void) {
  char bytes[8];
  pipe(pipes);
  set(note, 0);
  soon();
  result("read", read(pipes[0], bytes, 1));
  set(feed, SA_RESTART);
  soon();
  result("restarted read", read(pipes[0], bytes, 1));
  set(note, SA_RESTART);
  soon();
  struct pollfd poll_one = {pipes[0], POLLIN, 0};
  result("poll", poll(&poll_one, 1, -1));
  set(note, SA_RESTART);
  soon();
  result("pause", pause());
  set(note, SA_RESTART);
  soon();
  struct timespec time = {1000, 5}, left = {0, 0};
  result("nanosleep", nanosleep(&time, &left));
  printf("left %d\n", left.tv_sec > 900 && left.tv_sec <= 1000);
  set(note, 0);
  soon();
  int slept = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left);
  no_more();
  printf("clock_nanosleep %s left %d\n", strerror(slept), left.tv_sec > 900 && left.tv_sec <= 1000);
  set(note, 0);
  soon();
  left.tv_sec = 77;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 1000;
  slept = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, &left);
  no_more();
  printf("absolute %s left %d\n", strerror(slept), left.tv_sec == 77);
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  set(note, 0);
  soon();
  result("sem_wait", sem_wait(&semaphore));
  pipe(gate);
  pid_t child = fork();
  if (!child) {
    read(gate[0], bytes, 1);
    _exit(3);
  }
  set(note, 0);
  soon();
  int status = 0;
  result("waitpid", waitpid(child, &status, 0));
  set(let_go, SA_RESTART);
  soon();
  pid_t got = waitpid(child, &status, 0);
  no_more();
  printf("restarted waitpid %d status %d, handlers %d\n", got == child, WEXITSTATUS(status), ran > 0);
  // A pipe that is full: what was written counts.
  static char many[200000];
  set(note, 0);
  soon();
  result("write", write(pipes[1], many, sizeof many) > 0);
  // Ignored signals end nothing.
  child = fork();
  if (!child) {
    usleep(20000);
    kill(getppid(), SIGCHLD);
    kill(getppid(), SIGWINCH);
    usleep(20000);
    _exit(0);
  }
  int quiet[2];
  pipe(quiet);
  struct pollfd silent = {quiet[0], POLLIN, 0};
  set(note, 0);
  result("poll through ignored ones", poll(&silent, 1, 100));
  waitpid(child, 0, 0);
  int left_of_sleep;
  set(note, 0);
  soon();
  left_of_sleep = sleep(1000);
  no_more();
  printf("sleep left %d, handlers %d\n", left_of_sleep > 900, ran > 0);
  // SIGPIPE.
  struct sigaction ignore = {0};
  close(quiet[0]);
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, 0);
  ran = 0;
  result("broken pipe", write(quiet[1], "x", 1));
  ignore.sa_handler = note;
  sigaction(SIGPIPE, &ignore, 0);
  result("broken pipe", write(quiet[1], "x", 1));
  child = fork();
  if (!child) {
    signal(SIGPIPE, SIG_DFL);
    write(quiet[1], "x", 1);
    _exit(1);
  }
  waitpid(child, &status, 0);
  printf("killed by SIGPIPE %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
  return 0;
}
