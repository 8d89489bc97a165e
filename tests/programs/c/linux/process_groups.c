// exec:
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void result(const char *what, int value) {
  printf("%s %d %s\n", what, value, value < 0 ? strerror(errno) : "");
}

static int in_child(void (*work)(void)) {
  fflush(stdout);
  pid_t child = fork();
  int status;
  if (!child) {
    work();
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void sessions(void) {
  pid_t own = getpid();
  printf("new session %d\n", setsid() == own);
  printf("leader %d %d %d\n", getsid(0) == own, getpgid(0) == own, getpgrp() == own);
  result("again", setsid());
  result("leader moves", setpgid(0, 0));
  pid_t child = fork();
  if (!child) {
    printf("inherits %d %d\n", getsid(0) == own, getpgrp() == own);
    result("own group", setpgid(0, 0));
    printf("is %d session %d\n", getpgrp() == getpid(), getsid(0) == own);
    result("back", setpgid(0, own));
    printf("is %d\n", getpgrp() == own);
    result("unknown group", setpgid(0, 999999));
    result("setsid", setsid() == getpid());
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, 0, 0);
}

static void groups(void) {
  setsid();
  int gate[2];
  char byte;
  pipe(gate);
  pid_t child = fork();
  if (!child) {
    close(gate[1]);
    read(gate[0], &byte, 1);
    pid_t grand = fork();
    if (!grand)
      for (;;)
        pause();
    kill(0, SIGUSR1);
    for (;;)
      pause();
  }
  result("child", setpgid(child, child));
  printf("is %d\n", getpgid(child) == child);
  close(gate[1]);
  int status;
  waitpid(child, &status, 0);
  printf("group killed %d, we live\n", WTERMSIG(status) == SIGUSR1);
  result("gone", setpgid(child, child));
  result("getpgid", getpgid(999999));
  result("getsid", getsid(999999));
  result("negative", setpgid(0, -5));
  result("parent", setpgid(getppid(), 0));
  result("kill group", kill(-999999, SIGUSR1));
  result("killpg", killpg(999999, 0));
}

static void other_session(void) {
  int ready[2], gate[2];
  char byte;
  pipe(ready);
  pipe(gate);
  pid_t child = fork();
  if (!child) {
    close(gate[1]);
    setsid();
    write(ready[1], "r", 1);
    read(gate[0], &byte, 1);
    _exit(0);
  }
  read(ready[0], &byte, 1);
  result("child of another session", setpgid(child, getpgrp()));
  printf("its session %d\n", getsid(child) == child);
  close(gate[1]);
  waitpid(child, 0, 0);
}

static void kills_group(void) {
  setsid();
  int ready[2];
  pipe(ready);
  pid_t children[3];
  for (int i = 0; i < 3; i++) {
    children[i] = fork();
    if (!children[i]) {
      setpgid(0, i ? children[0] : 0);
      write(ready[1], "r", 1);
      for (;;)
        pause();
    }
    setpgid(children[i], children[0]);
  }
  char bytes[3];
  for (int i = 0; i < 3; i++)
    read(ready[0], bytes, 1);
  result("killpg", killpg(children[0], SIGTERM));
  int dead = 0, status;
  while (waitpid(-children[0], &status, 0) > 0)
    dead += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
  printf("dead %d\n", dead);
}

int main(void) {
  printf("%d\n", in_child(sessions));
  printf("%d\n", in_child(groups));
  printf("%d\n", in_child(other_session));
  printf("%d\n", in_child(kills_group));
  return 0;
}
