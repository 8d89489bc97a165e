// exec:
// The largest file that a process may make, and programs that no longer run as their owner once another user changed
// them, by every call that changes the size or contents of a file. Links to such programs.
#include "files.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>

static volatile sig_atomic_t exceeded;

static void note(int signal) { exceeded += signal == SIGXFSZ; }

#define LIMIT(call)                                                                                \
  do {                                                                                             \
    exceeded = 0;                                                                                  \
    TRY(call);                                                                                     \
    printf("signals %d\n", (int)exceeded);                                                         \
  } while (0)

static long size_of(int file) {
  struct stat status;
  fstat(file, &status);
  return status.st_size;
}

static void limits(void) {
  struct rlimit limit = {1000, 1000};
  signal(SIGXFSZ, note);
  int source = open("source", O_RDONLY), file = open("limited", O_CREAT | O_RDWR, 0600), pipes[2];
  int large = open("large", O_RDWR);
  setrlimit(RLIMIT_FSIZE, &limit);
  LIMIT(ftruncate(file, 1000));
  LIMIT(ftruncate(file, 1001));
  LIMIT(truncate("limited", 2000));
  LIMIT(fallocate(file, 0, 0, 1001));
  LIMIT(fallocate(file, 1, 0, 3000));
  LIMIT(fallocate(file, 0, 500, 500));
  LIMIT(fallocate(file, 0x10, 500, 501));
  LIMIT(fallocate(file, 3, 500, 5000));
  // What is too large already may shrink, but not to more than it has.
  LIMIT(ftruncate(large, 2500));
  LIMIT(ftruncate(large, 2600));
  LIMIT(truncate("large", 1500));
  LIMIT(fallocate(large, 0, 0, 1500));
  loff_t from = 0, to = 990;
  LIMIT(copy_file_range(source, &from, file, &to, 100, 0));
  LIMIT(copy_file_range(source, &from, file, &to, 100, 0));
  lseek(file, 995, SEEK_SET);
  LIMIT(sendfile(file, source, 0, 100));
  LIMIT(sendfile(file, source, 0, 100));
  pipe(pipes);
  write(pipes[1], "0123456789", 10);
  to = 996;
  LIMIT(splice(pipes[0], 0, file, &to, 10, 0));
  LIMIT(splice(pipes[0], 0, file, &to, 10, 0));
  LIMIT(pwrite(file, "x", 1, 1000));
  printf("size %ld\n", size_of(file));
}

static int which;

static void change(void) {
  int file = open("program", O_RDWR), source = open("source", O_RDONLY), pipes[2], done = 0;
  switch (which) {
  case 0: done = fallocate(file, 0, 0, 100); break;
  case 1: done = fallocate(file, 3, 0, 2); break;
  case 2: done = copy_file_range(source, 0, file, 0, 4, 0); break;
  case 3: done = sendfile(file, source, 0, 4); break;
  case 4:
    pipe(pipes);
    write(pipes[1], "x", 1);
    done = splice(pipes[0], 0, file, 0, 1, 0);
    break;
  case 5: done = ftruncate(file, 50); break;
  case 6: done = open("program", O_WRONLY | O_TRUNC) < 0; break;
  case 7: done = write(file, "x", 1); break;
  }
  printf("%d: %d\n", which, done);
}

static void link_it(void) {
  TRY(link("program", "public/a"));
  chmod("program", 0);
}

static void in_child(int user, void (*work)(void)) {
  fflush(stdout);
  if (fork() == 0) {
    if (user) setgid(user), setuid(user);
    work();
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
}

int main(void) {
  start_in("files-limits");
  umask(0);
  mkdir("public", 0777);
  static char text[3000];
  int file = open("source", O_CREAT | O_RDWR, 0666);
  write(file, text, sizeof text);
  file = open("large", O_CREAT | O_RDWR, 0666);
  write(file, text, sizeof text);
  in_child(0, limits);
  close(open("program", O_CREAT | O_RDWR, 0777));
  struct stat status;
  const mode_t modes[] = {06777, 02767, 04766};
  for (which = 0; which < 8; which++)
    for (unsigned i = 0; i < 3; i++) {
      chmod("program", modes[i]);
      in_child(1000, change);
      stat("program", &status);
      printf("mode %o\n", status.st_mode & 07777);
    }
  const mode_t linked[] = {06777, 04766, 02777, 02767, 0777, 0606, 0604};
  for (unsigned i = 0; i < sizeof linked / sizeof *linked; i++) {
    chmod("program", linked[i]);
    printf("mode %o\n", linked[i]);
    in_child(1000, link_it);
    unlink("public/a");
  }
  chown("program", 1000, 1000);
  chmod("program", 06777);
  in_child(1000, link_it);
  // Memory files whose size or contents are sealed.
  file = memfd_create("sealed", MFD_ALLOW_SEALING);
  ftruncate(file, 100);
  TRY(fcntl(file, F_ADD_SEALS, F_SEAL_GROW));
  TRY(fallocate(file, 0, 0, 100));
  TRY(fallocate(file, 0, 0, 101));
  TRY(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE));
  TRY(fallocate(file, 3, 0, 10));
  return 0;
}
