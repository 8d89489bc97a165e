// exec:
#include "memory_cases.h"

int main(void) {
  const char *name = "/tmp/everett_memory_private";
  int fd = new_file(name, "The first page", PAGE + 100);
  pwrite(fd, "the second", 10, PAGE);
  char *map = mmap(0, 2 * PAGE, RW, MAP_PRIVATE, fd, 0);
  printf("%s|%s|%d\n", map, map + PAGE, map[2 * PAGE - 1]);
  // What is written stays private.
  memcpy(map, "My", 2);
  char back[16] = "";
  pread(fd, back, 14, 0);
  printf("%.14s|%s\n", map, back);
  // What others write to other pages shows.
  pwrite(fd, "THE SECOND", 10, PAGE);
  pwrite(fd, "XXX", 3, 0);
  printf("%.14s|%.10s\n", map, map + PAGE);
  // It lives on when the file is closed and gone.
  close(fd);
  unlink(name);
  printf("%.14s|%.10s\n", map, map + PAGE);
  SHOW(madvise(map, PAGE, MADV_DONTNEED));
  printf("%.14s\n", map);
  munmap(map, 2 * PAGE);

  fd = new_file(name, "abcdef", 6);
  map = mmap(0, 6, PROT_READ, MAP_PRIVATE, fd, 0);
  printf("%s\n", map);
  // A file that is only read can be written privately.
  int reader = open(name, O_RDONLY);
  char *private = mmap(0, 6, RW, MAP_PRIVATE, reader, 0);
  private[0] = 'A';
  printf("%s %s\n", private, map);
  TELL(mmap(0, 6, RW, MAP_SHARED, reader, 0));
  char *shared = mmap(0, 6, PROT_READ, MAP_SHARED, reader, 0);
  printf("%s\n", shared);
  SHOW(mprotect(shared, PAGE, RW));
  int writer = open(name, O_WRONLY);
  TELL(mmap(0, 6, PROT_READ, MAP_SHARED, writer, 0));
  TELL(mmap(0, 6, PROT_READ, MAP_PRIVATE, writer, 0));
  int folder = open("/tmp", O_RDONLY);
  TELL(mmap(0, 6, PROT_READ, MAP_PRIVATE, folder, 0));
  int pipes[2];
  pipe(pipes);
  TELL(mmap(0, 6, PROT_READ, MAP_PRIVATE, pipes[0], 0));
  // Behind the end of the file: not a page of it.
  char *beyond = mmap(0, 3 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
  SHOW(write(pipes[1], beyond + PAGE - 4, 4));
  SHOW(write(pipes[1], beyond + PAGE, 4));
  char *offset = mmap(0, PAGE, PROT_READ, MAP_PRIVATE, fd, PAGE);
  SHOW(write(pipes[1], offset, 4));
  unlink(name);
  int zero = open("/dev/zero", O_RDWR);
  char *zeros = mmap(0, PAGE, RW, MAP_PRIVATE, zero, 0);
  printf("%d\n", zeros[7]);
  zeros[7] = 1;
  printf("%d\n", zeros[7]);
  return 0;
}
