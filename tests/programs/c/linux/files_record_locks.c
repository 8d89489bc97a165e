// exec:
#include "asleep.h"
#include "files.h"

static struct flock range(int type, long start, long len) {
  return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
}

static int set(int fd, int type, long start, long len) {
  struct flock lock = range(type, start, len);
  return fcntl(fd, F_SETLK, &lock);
}

static int set_waiting(int fd, int type, long start, long len) {
  struct flock lock = range(type, start, len);
  return fcntl(fd, F_SETLKW, &lock);
}

static int set_open(int fd, int type, long start, long len) {
  struct flock lock = range(type, start, len);
  return fcntl(fd, F_OFD_SETLK, &lock);
}

static void ask(int fd, int command, int type, long start, long len, pid_t owner) {
  struct flock lock = range(type, start, len);
  if (fcntl(fd, command, &lock) != 0)
    printf("%s\n", error_name(errno));
  else if (lock.l_type == F_UNLCK)
    printf("free\n");
  else
    printf("%s from %ld, %ld long, of %s\n", lock.l_type == F_RDLCK ? "read" : "write",
           (long)lock.l_start, (long)lock.l_len,
           lock.l_pid == owner ? "the parent" : lock.l_pid == -1 ? "an open file" : "another");
}

int main(void) {
  start_in("files-record-locks");
  int fd = open("file", O_CREAT | O_RDWR, 0644);
  ftruncate(fd, 100);
  pid_t self = getpid();
  TRY(set(fd, F_WRLCK, 10, 20));
  TRY(set(fd, F_RDLCK, 15, 5));
  TRY(set(fd, F_UNLCK, 25, 1));
  ask(fd, F_GETLK, F_WRLCK, 0, 0, self);
  IN_CHILD(
      ask(fd, F_GETLK, F_WRLCK, 0, 0, self); ask(fd, F_GETLK, F_RDLCK, 16, 2, self);
      ask(fd, F_GETLK, F_WRLCK, 16, 2, self); ask(fd, F_GETLK, F_RDLCK, 20, 0, self);
      ask(fd, F_GETLK, F_WRLCK, 25, 1, self); ask(fd, F_GETLK, F_WRLCK, 26, 100, self);
      ask(fd, F_GETLK, F_WRLCK, 30, 0, self); TRY(set(fd, F_RDLCK, 17, 1));
      TRY(set(fd, F_WRLCK, 17, 1)); TRY(set(fd, F_WRLCK, 0, 10)); TRY(set(fd, F_WRLCK, 9, 2)));
  // What the child had is free again.
  TRY(set(fd, F_WRLCK, 0, 10));
  // Wrong ones.
  TRY(set(fd, 7, 0, 1));
  TRY(set(fd, F_WRLCK, -5, 1));
  TRY(set(fd, F_WRLCK, 5, -10));
  TRY(set(99, F_WRLCK, 0, 1));
  int reader = open("file", O_RDONLY), writer = open("file", O_WRONLY);
  TRY(set(reader, F_WRLCK, 50, 1));
  TRY(set(writer, F_RDLCK, 50, 1));
  TRY(set(reader, F_RDLCK, 50, 1));
  struct flock end = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -10, .l_len = 0};
  TRY(fcntl(fd, F_SETLK, &end));
  IN_CHILD(ask(fd, F_GETLK, F_WRLCK, 80, 1000, self); ask(fd, F_GETLK, F_WRLCK, 50, 1, self));
  struct flock before = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 70, .l_len = -5};
  TRY(fcntl(fd, F_SETLK, &before));
  IN_CHILD(ask(fd, F_GETLK, F_WRLCK, 60, 20, self));
  // Closing any descriptor of the file loses all.
  TRY(close(reader));
  IN_CHILD(ask(fd, F_GETLK, F_WRLCK, 0, 0, self));
  // Locks of open files.
  int other = open("file", O_RDWR);
  TRY(set_open(fd, F_WRLCK, 0, 10));
  TRY(set_open(other, F_WRLCK, 5, 1));
  TRY(set_open(other, F_WRLCK, 10, 1));
  ask(other, F_OFD_GETLK, F_RDLCK, 0, 5, self);
  ask(other, F_GETLK, F_RDLCK, 0, 5, self);
  TRY(set(other, F_WRLCK, 0, 1));
  IN_CHILD(TRY(set_open(fd, F_WRLCK, 2, 2)); close(fd));
  TRY(set_open(other, F_WRLCK, 2, 1));
  TRY(set_open(fd, F_UNLCK, 0, 0));
  TRY(set_open(other, F_WRLCK, 2, 1));
  TRY(close(other));
  ask(fd, F_OFD_GETLK, F_WRLCK, 0, 0, self);
  // One waits for the other.
  int ends[2], back[2];
  pipe(ends);
  pipe(back);
  char byte;
  TRY(set(fd, F_WRLCK, 0, 10));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    TRY(set(fd, F_WRLCK, 20, 10));
    write(ends[1], "x", 1);
    TRY(set_waiting(fd, F_WRLCK, 0, 1));
    printf("the child has it\n");
    fflush(stdout);
    read(back[0], &byte, 1);
    _exit(0);
  }
  read(ends[0], &byte, 1);
  until_asleep(child);
  // The child waits for us: we must not wait for it.
  TRY(set_waiting(fd, F_WRLCK, 25, 1));
  set(fd, F_UNLCK, 0, 0);
  write(back[1], "x", 1);
  TRY(set_waiting(fd, F_WRLCK, 25, 1));
  waitpid(child, NULL, 0);
  // lockf is the same.
  TRY(lseek(fd, 0, SEEK_SET));
  TRY(lockf(fd, F_TLOCK, 5));
  IN_CHILD(TRY(lockf(fd, F_TEST, 5)); TRY(lockf(fd, F_TLOCK, 1)));
  TRY(lockf(fd, F_ULOCK, 0));
  return 0;
}
