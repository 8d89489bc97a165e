// exec:
// Sleeps on clocks of processor time: of a process that computes, of another thread, interrupted and absolute.
#include "io_cases.h"

static volatile sig_atomic_t caught;
static volatile unsigned long counted;
static volatile int over;

static void catch_signal(int signal) { caught = signal; }

static void *count(void *argument) {
  while (!over)
    counted++;
  return argument;
}

static long spent(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#define TELL(call) printf("%s: %d\n", #call, call)

int main(void) {
  struct timespec five = {0, 5000000}, rest = {9, 9};
  clockid_t clock;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0)
    for (;;)
      counted++;
  TELL(clock_getcpuclockid(child, &clock));
  TELL(clock_nanosleep(clock, 0, &five, &rest));
  SHOW(spent(clock) >= 5);
  struct timespec until = {0, 12000000};
  TELL(clock_nanosleep(clock, TIMER_ABSTIME, &until, 0));
  SHOW(spent(clock) >= 12);
  TELL(clock_nanosleep(clock, TIMER_ABSTIME, &five, 0));
  // A signal interrupts it, and the rest is told.
  struct sigaction action = {.sa_handler = catch_signal};
  sigaction(SIGALRM, &action, 0);
  // Again and again, as the first one may come before the wait.
  struct itimerval alarm = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &alarm, 0);
  struct timespec hour = {3600, 0};
  TELL(clock_nanosleep(clock, 0, &hour, &rest));
  setitimer(ITIMER_REAL, &never, 0);
  SHOW(rest.tv_sec > 3000 && rest.tv_sec <= 3600 && caught == SIGALRM);
  kill(child, SIGKILL);
  waitpid(child, 0, 0);
  TELL(clock_getcpuclockid(child, &clock));
  // Another thread.
  pthread_t thread;
  pthread_create(&thread, 0, count, 0);
  TELL(pthread_getcpuclockid(thread, &clock));
  TELL(clock_nanosleep(clock, 0, &five, &rest));
  SHOW(spent(clock) >= 5);
  clock_getcpuclockid(getpid(), &clock);
  TELL(clock_nanosleep(clock, 0, &five, &rest));
  TELL(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &five, &rest));
  over = 1;
  pthread_join(thread, 0);
  pthread_getcpuclockid(pthread_self(), &clock);
  TELL(clock_nanosleep(clock, 0, &five, &rest));
  TELL(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &five, &rest));
  return 0;
}
