// exec:
// The bits of PR_SET_SECUREBITS, their locks, and what they do to the capabilities of root.
#include "files.h"
#include <linux/capability.h>
#include <sys/prctl.h>

static void show(const char *what) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  syscall(SYS_capget, &header, data);
  printf("%s: %d %d, %x\n", what, data[0].effective != 0, data[0].permitted != 0, prctl(PR_GET_SECUREBITS));
}

static void keeps(void) {
  TRY(prctl(PR_SET_KEEPCAPS, 1));
  TRY(prctl(PR_GET_SECUREBITS));
  TRY(setuid(1000));
  show("kept");
  TRY(prctl(PR_SET_KEEPCAPS, 0));
  show("not any more");
}

static void does_not_follow(void) {
  TRY(prctl(PR_SET_SECUREBITS, 4));
  TRY(setresuid(-1, 1000, -1));
  show("another user");
  TRY(setuid(1000));
  show("for good");
}

static void locks(void) {
  TRY(prctl(PR_SET_SECUREBITS, 0x10));
  TRY(prctl(PR_GET_KEEPCAPS));
  TRY(prctl(PR_SET_SECUREBITS, 0x30));
  TRY(prctl(PR_SET_KEEPCAPS, 0));
  TRY(prctl(PR_SET_SECUREBITS, 0));
  TRY(prctl(PR_SET_SECUREBITS, 0x20));
  TRY(prctl(PR_SET_SECUREBITS, 0x35));
  TRY(prctl(PR_SET_SECUREBITS, 0x1000));
  TRY(prctl(PR_SET_SECUREBITS, 0xff));
  TRY(prctl(PR_GET_SECUREBITS));
}

static void nothing_ambient(void) {
  TRY(prctl(PR_SET_SECUREBITS, 0xc0));
  TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0));
}

static void without_privileges(void) {
  setuid(1000);
  TRY(prctl(PR_SET_SECUREBITS, 0x10));
  TRY(prctl(PR_SET_SECUREBITS, 0));
  TRY(prctl(PR_SET_KEEPCAPS, 1));
  TRY(prctl(PR_GET_SECUREBITS));
}

static void executes(void) {
  TRY(prctl(PR_SET_SECUREBITS, 0x11));
  fflush(stdout);
  execl("/proc/self/exe", "again", "child", NULL);
}

int main(int count, char **arguments) {
  if (count > 1) {
    show("executed");
    return 0;
  }
  void (*all[])(void) = {keeps, does_not_follow, locks, nothing_ambient, without_privileges, executes};
  for (int i = 0; i < 6; i++) {
    fflush(stdout);
    if (fork() == 0) {
      all[i]();
      fflush(stdout);
      _exit(0);
    }
    wait(NULL);
  }
  return 0;
}
