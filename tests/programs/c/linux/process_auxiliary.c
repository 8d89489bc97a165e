// options: --program program
// exec: first
// What a program finds in its auxiliary vector: its users, whether it is privileged, its name, random bytes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UID = 11, EUID = 12, GID = 13, EGID = 14, SECURE = 23 };

static void show(const char *what) {
  uid_t users[3];
  gid_t groups[3];
  getresuid(&users[0], &users[1], &users[2]);
  getresgid(&groups[0], &groups[1], &groups[2]);
  int death = -1;
  prctl(PR_GET_PDEATHSIG, &death);
  const unsigned char *random = (void *)getauxval(AT_RANDOM);
  int sum = 0;
  for (int at = 0; at < 16; at++) sum |= random[at];
  printf("%s: vector %lu %lu %lu %lu secure %lu, users %d %d %d, groups %d %d %d, name %s, random %d, death %d\n", what,
         getauxval(UID), getauxval(EUID), getauxval(GID), getauxval(EGID), getauxval(SECURE), users[0], users[1], users[2],
         groups[0], groups[1], groups[2], (char *)getauxval(AT_EXECFN), sum != 0, death);
  printf("  getenv %s, secure_getenv %s\n", getenv("SHOWN"), secure_getenv("SHOWN") ? "there" : "hidden");
  unsigned long vector[2] = {0, 0}, secure = 9, effective = 9;
  int fd = open("/proc/self/auxv", O_RDONLY);
  while (read(fd, vector, sizeof vector) == sizeof vector) {
    if (vector[0] == SECURE) secure = vector[1];
    if (vector[0] == EUID) effective = vector[1];
  }
  if (fd >= 0) printf("  /proc: %lu %lu\n", secure, effective);
  fflush(stdout);
}

#define RUN(what, prepare)                                                                         \
  do {                                                                                             \
    fflush(stdout);                                                                                \
    pid_t child_ = fork();                                                                         \
    if (child_ == 0) {                                                                             \
      prctl(PR_SET_PDEATHSIG, 10);                                                                 \
      prepare;                                                                                     \
      char *env[] = {"SHOWN=yes", NULL};                                                           \
      execle("./program", "program", "show", what, NULL, env);                                     \
      printf("%s: %s\n", what, strerror(errno));                                                   \
      fflush(stdout);                                                                              \
      _exit(1);                                                                                    \
    }                                                                                              \
    waitpid(child_, NULL, 0);                                                                      \
  } while (0)

static void become(int user, int group) {
  if (setgroups(0, NULL) || setresgid(group, group, group) || setresuid(user, user, user)) puts("cannot become another");
}

// A copy of the program that others may change.
static int copy(void) {
  static char bytes[1 << 16];
  int from = open("./program", O_RDONLY), to = open("/tmp/everett-auxiliary", O_CREAT | O_TRUNC | O_WRONLY, 0755);
  ssize_t count;
  while ((count = read(from, bytes, sizeof bytes)) > 0)
    if (write(to, bytes, count) != count) return -1;
  close(from);
  return close(to);
}

static void run_copy(const char *what, int gives_up) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    become(1001, 1002);
    if (gives_up) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    char *env[] = {"SHOWN=yes", NULL};
    execle("/tmp/everett-auxiliary", "called", "show", what, NULL, env);
    printf("%s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
  }
  waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
  if (argc > 2 && !strcmp(argv[1], "show")) {
    show(argv[2]);
    return 0;
  }
  RUN("root", (void)0);
  RUN("another user", become(1001, 1002));
  RUN("effective user", if (setresuid(-1, 1001, -1)) puts("no"));
  RUN("effective group", if (setresgid(-1, 1002, -1)) puts("no"));
  RUN("real user", if (setresuid(1001, 0, 0)) puts("no"));
  RUN("saved user", if (setresuid(1001, 1001, 0)) puts("no"));
  if (copy() != 0) puts("cannot copy");
  static const struct { const char *what; int mode, user, group, gives_up; } cases[] = {
      {"plain", 0755, 1003, 1004, 0},       {"set-user-ID", 04755, 1003, 1004, 0}, {"set-group-ID", 02755, 1003, 1004, 0},
      {"both", 06755, 1003, 1004, 0},       {"of root", 04755, 0, 0, 0},           {"own", 04755, 1001, 1002, 0},
      {"group only", 02745, 1003, 1004, 0}, {"given up", 06755, 1003, 1004, 1},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    if (chown("/tmp/everett-auxiliary", cases[at].user, cases[at].group) ||
        chmod("/tmp/everett-auxiliary", cases[at].mode))
      puts("cannot change the copy");
    run_copy(cases[at].what, cases[at].gives_up);
  }
  unlink("/tmp/everett-auxiliary");
  return 0;
}
