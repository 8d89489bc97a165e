// exec:
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ran, code, value, own_timer;
static void note(int signal, siginfo_t *si, void *context) {
  ran++;
  code = si->si_code;
  value = si->si_value.sival_int;
  (void)signal, (void)context;
}

static void set(int signal) {
  struct sigaction action = {0};
  action.sa_sigaction = note;
  action.sa_flags = SA_SIGINFO;
  sigaction(signal, &action, 0);
  ran = 0;
}

static void *fires(union sigval v) {
  value = v.sival_int;
  own_timer++;
  return 0;
}
static void fires_void(union sigval v) { fires(v); }

// Waits for a signal that is blocked at other times, so that none is missed.
static void wait_for_signal(void) {
  sigset_t none;
  sigemptyset(&none);
  sigsuspend(&none);
}

static long ms(struct timespec t) { return t.tv_sec * 1000 + t.tv_nsec / 1000000; }

int main(void) {
  set(SIGALRM);
  printf("alarm %u\n", alarm(100));
  printf("alarm %u\n", alarm(0));
  printf("alarm %u\n", alarm(0));
  sigset_t some, none;
  sigemptyset(&none);
  sigemptyset(&some);
  sigaddset(&some, SIGALRM);
  sigaddset(&some, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &some, 0);
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  alarm(1);
  wait_for_signal();
  clock_gettime(CLOCK_MONOTONIC, &after);
  printf("paused a second %d code %d ran %d\n", ms(after) - ms(before) >= 999, code == SI_KERNEL, ran);

  struct itimerval timer = {{0, 10000}, {0, 20000}}, old;
  printf("setitimer %d\n", setitimer(ITIMER_REAL, &timer, &old));
  printf("old %ld %ld\n", old.it_value.tv_sec, old.it_value.tv_usec);
  ran = 0;
  for (int i = 0; i < 3; i++)
    wait_for_signal();
  printf("ran %d\n", ran);
  timer.it_value.tv_sec = 1000;
  setitimer(ITIMER_REAL, &timer, 0);
  getitimer(ITIMER_REAL, &old);
  printf("interval %ld.%06ld value %d\n", old.it_interval.tv_sec, old.it_interval.tv_usec,
         old.it_value.tv_sec > 900 && old.it_value.tv_sec <= 1000);
  memset(&timer, 0, sizeof timer);
  setitimer(ITIMER_REAL, &timer, &old);
  getitimer(ITIMER_REAL, &old);
  printf("off %ld %ld\n", old.it_value.tv_sec, old.it_value.tv_usec);
  timer.it_value.tv_usec = 1000000;
  printf("bad %d", setitimer(ITIMER_REAL, &timer, 0));
  printf(" %s\n", strerror(errno));
  timer.it_value.tv_usec = 1;
  printf("bad %d", setitimer(3, &timer, 0));
  printf(" %s\n", strerror(errno));
  printf("bad %d", getitimer(-1, &old));
  printf(" %s\n", strerror(errno));

  sigprocmask(SIG_SETMASK, &none, 0);

  // A child has no timers of its parent.
  alarm(50);
  pid_t child = fork();
  if (!child)
    _exit(alarm(0));
  int status;
  waitpid(child, &status, 0);
  printf("child's alarm %d own %d\n", WEXITSTATUS(status), alarm(0) > 0);

  // Without a handler it kills.
  child = fork();
  if (!child) {
    signal(SIGALRM, SIG_DFL);
    ualarm(1000, 0);
    for (;;)
      pause();
  }
  waitpid(child, &status, 0);
  printf("killed by SIGALRM %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);

  // A loop that computes is interrupted too.
  set(SIGALRM);
  ualarm(5000, 0);
  long spins = 0;
  while (!ran)
    spins++;
  printf("spun %d\n", spins > 0);
  set(SIGVTALRM);
  struct itimerval virtual = {{0, 0}, {0, 2000}};
  setitimer(ITIMER_VIRTUAL, &virtual, 0);
  while (!ran)
    spins++;
  puts("virtual");

  timer_t id;
  struct sigevent event = {0};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN;
  event.sigev_value.sival_int = 31;
  set(SIGRTMIN);
  sigprocmask(SIG_BLOCK, &some, 0);
  printf("timer_create %d\n", timer_create(CLOCK_MONOTONIC, &event, &id));
  struct itimerspec when = {{0, 0}, {5000, 0}}, left;
  printf("gettime %d", timer_gettime(id, &left));
  printf(" %ld\n", ms(left.it_value));
  printf("settime %d\n", timer_settime(id, 0, &when, 0));
  timer_gettime(id, &left);
  printf("left %d\n", left.it_value.tv_sec > 4000 && left.it_value.tv_sec <= 5000);
  when.it_value = (struct timespec){0, 5000000};
  timer_settime(id, 0, &when, 0);
  wait_for_signal();
  printf("ran %d code %d value %d overrun %d\n", ran, code == SI_TIMER, value, timer_getoverrun(id));
  timer_gettime(id, &left);
  printf("expired %ld\n", ms(left.it_value));

  // Overruns are counted while the signal is blocked.
  when.it_interval.tv_nsec = 10000000;
  timer_settime(id, 0, &when, 0);
  usleep(48000);
  struct itimerspec off = {0};
  siginfo_t si;
  int got = sigwaitinfo(&some, &si);
  timer_settime(id, 0, &off, &left);
  printf("%d overrun %d interval %ld\n", got == SIGRTMIN, si.si_overrun >= 3,
         ms(left.it_interval));

  // An absolute time.
  clock_gettime(CLOCK_REALTIME, &when.it_value);
  when.it_value.tv_sec += 1;
  when.it_interval.tv_nsec = 0;
  timer_t wall;
  event.sigev_value.sival_int = 77;
  timer_create(CLOCK_REALTIME, &event, &wall);
  ran = 0;
  timer_settime(wall, TIMER_ABSTIME, &when, 0);
  wait_for_signal();
  printf("absolute %d value %d\n", ran, value);
  printf("delete %d %d\n", timer_delete(wall), timer_delete(id));
  printf("bad clock %d", timer_create(77, &event, &id));
  printf(" %s\n", strerror(errno));
  event.sigev_signo = 99;
  printf("bad signal %d", timer_create(CLOCK_REALTIME, &event, &id));
  printf(" %s\n", strerror(errno));

  struct sigevent by_thread = {0};
  by_thread.sigev_notify = SIGEV_THREAD;
  by_thread.sigev_notify_function = fires_void;
  by_thread.sigev_value.sival_int = 5;
  printf("thread %d\n", timer_create(CLOCK_MONOTONIC, &by_thread, &id));
  sigprocmask(SIG_SETMASK, &none, 0);
  when = (struct itimerspec){{0, 10000000}, {0, 10000000}};
  timer_settime(id, 0, &when, 0);
  while (own_timer < 3)
    usleep(1000);
  printf("fired %d value %d delete %d\n", own_timer >= 3, value, timer_delete(id));
  struct sigevent silent = {.sigev_notify = SIGEV_NONE};
  printf("none %d", timer_create(CLOCK_MONOTONIC, &silent, &id));
  when = (struct itimerspec){{0, 0}, {10000, 0}};
  timer_settime(id, 0, &when, 0);
  timer_gettime(id, &left);
  printf(" %d\n", left.it_value.tv_sec > 9000 && left.it_value.tv_sec < 10000);
  return 0;
}
