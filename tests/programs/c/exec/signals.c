// exec:
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t count, last;

static void on_signal(int number) {
  count++;
  last = number;
}

static void with_information(int number, siginfo_t *information, void *context) {
  count += 10;
  last = number == information->si_signo && context ? number : -1;
}

int main(void) {
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  kill(getpid(), SIGUSR1);
  printf("%d %d\n", count, last);
  struct sigaction action, old;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = with_information;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR2, &action, &old);
  raise(SIGUSR2);
  printf("%d %d %d\n", count, last, old.sa_handler == SIG_DFL);
  sigset_t set, pending;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  raise(SIGUSR1);
  sigpending(&pending);
  printf("%d %d\n", count, sigismember(&pending, SIGUSR1));
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  printf("%d\n", count);
  signal(SIGTERM, SIG_IGN);
  raise(SIGTERM);
  puts("still here");
  fflush(stdout);
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);
  return 0;
}
