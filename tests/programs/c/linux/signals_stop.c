// exec:
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t told[8][2], count, continued;
static void child_news(int signal, siginfo_t *si, void *context) {
  told[count][0] = si->si_code;
  told[count++][1] = si->si_status;
  (void)signal, (void)context;
}
static int ready[2], gate[2];
static void goes_on(int signal) {
  continued++;
  write(ready[1], "c", 1);
  (void)signal;
}

static const char *kind(int code) {
  return code == CLD_EXITED      ? "exited"
         : code == CLD_KILLED    ? "killed"
         : code == CLD_STOPPED   ? "stopped"
         : code == CLD_CONTINUED ? "continued"
                                 : "?";
}

// The news may come a little after what `waitpid` returns.
static void show_told(int expected) {
  while (count < expected)
    usleep(1000);
  for (int i = 0; i < count; i++)
    printf("told: %s %d\n", kind(told[i][0]), told[i][1]);
  count = 0;
}

static void show(const char *what, int got, int child, int status) {
  printf("%s: child %d", what, got == child);
  if (got <= 0)
    printf(" result %d", got);
  else if (WIFSTOPPED(status))
    printf(" stopped by %d", WSTOPSIG(status));
  else if (WIFCONTINUED(status))
    printf(" continued");
  else if (WIFSIGNALED(status))
    printf(" killed by %d", WTERMSIG(status));
  else if (WIFEXITED(status))
    printf(" exited with %d", WEXITSTATUS(status));
  puts("");
}

int main(void) {
  int status = 0;
  struct sigaction action = {0};
  action.sa_sigaction = child_news;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGCHLD, &action, 0);
  pipe(ready);
  pipe(gate);
  pid_t child = fork();
  if (!child) {
    signal(SIGCONT, goes_on);
    setpgid(0, 0);
    write(ready[1], "r", 1);
    sigset_t hup, none;
    sigemptyset(&none);
    sigemptyset(&hup);
    sigaddset(&hup, SIGCONT);
    sigprocmask(SIG_BLOCK, &hup, 0);
    while (continued < 2)
      sigsuspend(&none);
    sigprocmask(SIG_SETMASK, &none, 0);
    char go;
    read(gate[0], &go, 1);
    raise(SIGTSTP);
    _exit(continued);
  }
  char byte;
  read(ready[0], &byte, 1);
  int got = waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED);
  show("nothing yet", got, child, status);
  kill(child, SIGSTOP);
  got = waitpid(child, &status, WUNTRACED);
  show("SIGSTOP", got, child, status);
  show_told(1);
  got = waitpid(child, &status, WUNTRACED | WNOHANG);
  show("told once", got, child, status);
  kill(child, SIGCONT);
  got = waitpid(child, &status, WCONTINUED);
  show("SIGCONT", got, child, status);
  read(ready[0], &byte, 1);
  show_told(1);
  kill(child, SIGTSTP);
  siginfo_t si = {0};
  int waited = waitid(P_PID, child, &si, WSTOPPED | WNOWAIT);
  printf("waitid %d %s %d\n", waited, kind(si.si_code), si.si_status);
  waited = waitid(P_PID, child, &si, WSTOPPED);
  printf("waitid %d %s %d\n", waited, kind(si.si_code), si.si_status);
  kill(child, SIGCONT);
  memset(&si, 0, sizeof si);
  waited = waitid(P_PID, child, &si, WCONTINUED | WEXITED);
  printf("waitid %d %s %d\n", waited, kind(si.si_code), si.si_status);
  write(gate[1], "g", 1);
  got = waitpid(child, &status, WUNTRACED);
  show("stops itself", got, child, status);
  kill(child, SIGUSR1);
  got = waitpid(child, &status, WNOHANG);
  show("stopped ones do not die", got, child, status);
  count = 0;
  kill(child, SIGCONT);
  got = waitpid(child, &status, 0);
  show("then they do", got, child, status);
  count = 0;

  // SIGKILL ends what is stopped; SA_NOCLDSTOP keeps stops quiet.
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDSTOP;
  sigaction(SIGCHLD, &action, 0);
  child = fork();
  if (!child)
    for (;;)
      pause();
  kill(child, SIGSTOP);
  got = waitpid(child, &status, WUNTRACED);
  show("SIGSTOP", got, child, status);
  printf("told %d\n", count);
  kill(child, SIGKILL);
  got = waitpid(child, &status, WUNTRACED);
  show("SIGKILL", got, child, status);
  show_told(1);

  // SA_NOCLDWAIT and SIG_IGN leave no zombies.
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDWAIT;
  sigaction(SIGCHLD, &action, 0);
  child = fork();
  if (!child)
    _exit(5);
  got = waitpid(child, &status, 0);
  printf("no zombie %d %s\n", got, strerror(errno));
  show_told(1);
  signal(SIGCHLD, SIG_IGN);
  child = fork();
  if (!child)
    _exit(5);
  got = waitpid(-1, &status, 0);
  printf("no zombie %d %s\n", got, strerror(errno));
  show_told(0);
  return 0;
}
