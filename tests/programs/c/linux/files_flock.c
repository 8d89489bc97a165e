// exec:
#include "files.h"

static void wait_until(int fd, int ends[2]) {
  char byte;
  (void)fd;
  if (read(ends[0], &byte, 1) != 1) printf("no word\n");
}

int main(void) {
  start_in("files-flock");
  int one = open("file", O_CREAT | O_RDWR, 0644), two = open("file", O_RDWR);
  TRY(flock(one, LOCK_SH));
  TRY(flock(two, LOCK_SH));
  TRY(flock(two, LOCK_EX | LOCK_NB));
  // The attempt has cost the second its lock.
  TRY(flock(one, LOCK_EX | LOCK_NB));
  TRY(flock(two, LOCK_SH | LOCK_NB));
  TRY(flock(one, LOCK_UN));
  TRY(flock(one, LOCK_UN));
  TRY(flock(two, LOCK_EX));
  TRY(flock(one, LOCK_SH | LOCK_NB));
  // Copies of a descriptor have the same lock.
  int copy = dup(two);
  TRY(flock(copy, LOCK_EX | LOCK_NB));
  TRY(close(two));
  TRY(flock(one, LOCK_SH | LOCK_NB));
  TRY(close(copy));
  TRY(flock(one, LOCK_EX | LOCK_NB));
  TRY(flock(99, LOCK_SH));
  TRY(flock(one, 0));
  TRY(flock(one, LOCK_SH | LOCK_EX));
  // Children share it.
  IN_CHILD(TRY(flock(one, LOCK_EX | LOCK_NB)));
  IN_CHILD(int other = open("file", O_RDWR); TRY(flock(other, LOCK_SH | LOCK_NB)));
  IN_CHILD(TRY(flock(one, LOCK_UN)));
  IN_CHILD(int other = open("file", O_RDWR); TRY(flock(other, LOCK_EX | LOCK_NB)));
  // One waits until the other lets go.
  int ends[2];
  pipe(ends);
  TRY(flock(one, LOCK_EX));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    close(one);
    int other = open("file", O_RDWR);
    write(ends[1], "x", 1);
    TRY(flock(other, LOCK_EX));
    printf("the child has it\n");
    fflush(stdout);
    _exit(3);
  }
  wait_until(one, ends);
  printf("the parent lets go\n");
  fflush(stdout);
  flock(one, LOCK_UN);
  int status;
  waitpid(child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  // Its end lets go of what it had.
  TRY(flock(one, LOCK_EX | LOCK_NB));
  // flock and fcntl do not know of each other.
  struct flock lock = {.l_type = F_WRLCK};
  IN_CHILD(int other = open("file", O_RDWR); TRY(fcntl(other, F_SETLK, &lock)));
  int ends2[2];
  pipe(ends2);
  TRY(flock(ends2[0], LOCK_EX));
  return 0;
}
