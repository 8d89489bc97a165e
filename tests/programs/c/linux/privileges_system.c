// exec:
// What a user may not do to the system: mounts, swap space, debuggers, namespaces, interfaces. (Kernels may lack
// modules and ports.)
#include "files.h"
#include <net/if.h>
#include <net/route.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/swap.h>

static long request(int fd, unsigned long number, const char *name, int value) {
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, name);
  request.ifr_ifru.ifru_ivalue = value;
  return ioctl(fd, number, &request);
}

static void mounts(void) {
  TRY(mount("none", "here", "tmpfs", 0, 0));
  TRY(mount("none", "nowhere", "tmpfs", 0, 0));
  TRY(mount("none", "file/below", "tmpfs", 0, 0));
  TRY(umount2("here", 0));
  TRY(umount2("here", 1 << 20));
  TRY(umount2("nowhere", 0));
  TRY(umount2("/", MNT_DETACH));
  TRY(syscall(SYS_pivot_root, "here", "here"));
  TRY(syscall(430, "tmpfs", 0));
  TRY(syscall(432, 0, 0, 0));
  TRY(syscall(429, 0, "here", 0, "here", 0));
}

static void system_calls(void) {
  TRY(swapon("file", 0));
  TRY(swapon("file", 1 << 30));
  TRY(swapoff("file"));
  TRY(syscall(SYS_reboot, 0, 0, 0, 0));
  TRY(syscall(SYS_acct, "file"));
  TRY(syscall(SYS_vhangup));
  TRY(klogctl(5, 0, 0));
  TRY(klogctl(8, 0, 1));
  TRY(sethostname("other", 5));
  TRY(syscall(SYS_setdomainname, "other", 5));
}

static void debuggers(void) {
  TRY(ptrace(PTRACE_ATTACH, 1, 0, 0));
  TRY(ptrace(PTRACE_ATTACH, getpid(), 0, 0));
  TRY(ptrace(PTRACE_ATTACH, 999999, 0, 0));
  TRY(ptrace(PTRACE_PEEKDATA, 1, 0, 0));
  TRY(ptrace(PTRACE_CONT, getppid(), 0, 0));
  TRY(ptrace(PTRACE_SEIZE, 1, 1, 0));
}

static void namespaces(void) {
  int fd = open("file", O_RDONLY);
  TRY(unshare(0));
  TRY(unshare(CLONE_FILES | CLONE_FS | CLONE_SYSVSEM));
  TRY(unshare(CLONE_THREAD | CLONE_SIGHAND | CLONE_VM));
  TRY(unshare(CLONE_NEWNS));
  TRY(unshare(CLONE_NEWNET | CLONE_NEWPID));
  TRY(unshare(CLONE_PARENT));
  TRY(unshare(1));
  TRY(setns(-1, 0));
  TRY(setns(fd, 0));
  TRY(setns(fd, CLONE_NEWNET));
  close(fd);
}

static void interfaces(void) {
  int internet = socket(AF_INET, SOCK_DGRAM, 0), unix_domain = socket(AF_UNIX, SOCK_STREAM, 0);
  struct rtentry route;
  memset(&route, 0, sizeof route);
  TRY(request(internet, SIOCSIFFLAGS, "lo", IFF_UP));
  TRY(request(internet, SIOCSIFFLAGS, "none", IFF_UP));
  TRY(request(internet, SIOCSIFMTU, "lo", 1000));
  TRY(request(internet, SIOCSIFADDR, "lo", AF_INET));
  TRY(request(internet, SIOCSIFNAME, "lo", 0));
  TRY(request(unix_domain, SIOCSIFFLAGS, "lo", IFF_UP));
  TRY(ioctl(internet, SIOCADDRT, &route));
  TRY(ioctl(internet, SIOCDELRT, &route));
  TRY(ioctl(unix_domain, SIOCADDRT, &route));
  TRY(request(internet, SIOCGIFMTU, "lo", 0));
  close(internet), close(unix_domain);
}

int main(void) {
  start_in("privileges-system");
  mkdir("here", 0777);
  make_file("file", "text");
  TRY(setgid(65534));
  TRY(setuid(65534));
  mounts();
  system_calls();
  debuggers();
  namespaces();
  interfaces();
  return 0;
}
