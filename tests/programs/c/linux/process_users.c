// exec:
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/wait.h>
#include <unistd.h>

// What only root can do is checked where we are root, so that the output does not depend on it.
static int wrong;
#define CHECK(what)                                                                                                    \
  do {                                                                                                                 \
    if (!(what)) {                                                                                                     \
      wrong++;                                                                                                         \
      printf("line %d: %s (errno %s)\n", __LINE__, #what, strerror(errno));                                            \
    }                                                                                                                  \
  } while (0)
#define FAILS(what, error)                                                                                             \
  do {                                                                                                                 \
    errno = 0;                                                                                                         \
    CHECK((what) == -1 && errno == error);                                                                             \
  } while (0)

static int ids(int (*get)(uid_t *, uid_t *, uid_t *), uid_t a, uid_t b, uid_t c) {
  uid_t x, y, z;
  return get(&x, &y, &z) == 0 && x == a && y == b && z == c;
}

static void in_child(void (*work)(void)) {
  fflush(stdout);
  pid_t child = fork();
  int status;
  if (!child) {
    wrong = 0;
    work();
    fflush(stdout);
    _exit(wrong);
  }
  waitpid(child, &status, 0);
  printf("%d\n", status);
}

static void drop_all(void) {
  CHECK(setgid(200) == 0);
  CHECK(setuid(100) == 0);
  CHECK(ids(getresuid, 100, 100, 100));
  CHECK(ids(getresgid, 200, 200, 200));
  FAILS(setuid(0), EPERM);
  FAILS(seteuid(0), EPERM);
  FAILS(setgid(0), EPERM);
  FAILS(setresuid(100, 0, 100), EPERM);
  CHECK(setresuid(100, -1, 100) == 0);
  FAILS(setgroups(0, 0), EPERM);
  FAILS(sethostname("x", 1), EPERM);
  FAILS(kill(getppid(), 0), EPERM);
  FAILS(nice(-5), EPERM);
  FAILS(kill(1, SIGTERM), EPERM);
  FAILS(sigqueue(1, 0, (union sigval){0}), EPERM);
}

static void drop_for_a_while(void) {
  CHECK(seteuid(100) == 0);
  CHECK(ids(getresuid, 0, 100, 0));
  CHECK(getuid() == 0 && geteuid() == 100);
  CHECK(seteuid(0) == 0);
  CHECK(ids(getresuid, 0, 0, 0));
  CHECK(setreuid(100, -1) == 0);
  CHECK(ids(getresuid, 100, 0, 0));
  CHECK(setreuid(-1, 100) == 0);
  CHECK(ids(getresuid, 100, 100, 0));
  CHECK(seteuid(0) == 0);
  CHECK(setresuid(1, 2, 3) == 0);
  CHECK(ids(getresuid, 1, 2, 3));
  CHECK(setresuid(-1, 3, 2) == 0);
  CHECK(ids(getresuid, 1, 3, 2));
  FAILS(setreuid(2, -1), EPERM);
  CHECK(setreuid(3, 1) == 0);
  CHECK(ids(getresuid, 3, 1, 1));
  FAILS(setuid(2), EPERM);
}

static void swaps(void) {
  CHECK(setresgid(10, 20, 30) == 0);
  CHECK(ids(getresgid, 10, 20, 30));
  CHECK(getgid() == 10 && getegid() == 20);
  CHECK(setregid(20, 10) == 0);
  CHECK(ids(getresgid, 20, 10, 10));
  CHECK(setegid(99) == 0);
  CHECK(getegid() == 99);
}

static void groups(void) {
  gid_t set[3] = {7, 5, 9}, got[8];
  CHECK(setgroups(3, set) == 0);
  CHECK(getgroups(0, 0) == 3);
  FAILS(getgroups(2, got), EINVAL);
  CHECK(getgroups(8, got) == 3);
  CHECK((got[0] == 5 || got[0] == 7) && got[2] == 9);
  CHECK(setgroups(0, 0) == 0);
  CHECK(getgroups(8, got) == 0);
  FAILS(getgroups(-1, got), EINVAL);
}

int main(void) {
  if (getuid() == 0) {
    in_child(drop_all);
    in_child(drop_for_a_while);
    in_child(swaps);
    in_child(groups);
  } else {
    puts("0\n0\n0\n0");
  }
  // What everybody can do.
  CHECK(setuid(getuid()) == 0);
  CHECK(setgid(getgid()) == 0);
  CHECK(seteuid(getuid()) == 0);
  CHECK(setresuid(-1, -1, -1) == 0);
  CHECK(setresgid(-1, getgid(), -1) == 0);
  CHECK(setreuid(-1, -1) == 0);
  CHECK(ids(getresuid, getuid(), getuid(), getuid()));
  CHECK(setfsuid(-1) == (int)geteuid());
  CHECK(setfsgid(-1) == (int)getegid());
  printf("wrong %d\n", wrong);
  return 0;
}
