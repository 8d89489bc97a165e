// exec:
#include "memory_cases.h"

int main(void) {
  const char *name = "/tmp/everett_memory_shared";
  int fd = new_file(name, "hello", 2 * PAGE);
  char *map = mmap(0, 2 * PAGE, RW, MAP_SHARED, fd, 0);
  printf("%s\n", map);
  // Memory to file.
  memcpy(map, "HELLO", 5);
  char back[16] = "";
  pread(fd, back, 5, 0);
  printf("%s\n", back);
  // File to memory.
  pwrite(fd, "world", 5, PAGE);
  printf("%s\n", map + PAGE);
  // Twice the same file: one memory.
  char *twice = mmap(0, PAGE, RW, MAP_SHARED, fd, PAGE);
  strcpy(twice, "twice");
  printf("%s %d\n", map + PAGE, twice != map + PAGE);
  map[PAGE] = 'T';
  printf("%s\n", twice);
  // Another open file of it.
  int other = open(name, O_RDONLY);
  char *seen = mmap(0, 2 * PAGE, PROT_READ, MAP_SHARED, other, 0);
  strcpy(map + 8, "seen");
  printf("%s\n", seen + 8);
  read(other, back, 5);
  printf("%s\n", back);
  // A private mapping shows it until it is written.
  char *private = mmap(0, PAGE, RW, MAP_PRIVATE, fd, 0);
  printf("%s\n", private + 8);
  map[8] = 'S';
  printf("%s\n", private + 8);
  private[8] = 'p';
  map[9] = 'E';
  printf("%s %s\n", private + 8, map + 8);
  // The memory of a file as the buffer of calls on it.
  SHOW(pread(fd, map + 100, 5, 0));
  printf("%s\n", map + 100);
  SHOW(pwrite(fd, map, 5, 200));
  printf("%s\n", map + 200);
  // Shorter and longer again.
  SHOW(ftruncate(fd, 3));
  printf("%s|\n", map);
  SHOW(write(1, map + PAGE, 1));
  SHOW(ftruncate(fd, 2 * PAGE));
  printf("%s|%d\n", map, map[PAGE]);
  strcpy(map + PAGE, "new");
  SHOW(msync(map, 2 * PAGE, MS_SYNC));
  SHOW(msync(map, 2 * PAGE, MS_ASYNC));
  SHOW(msync(map, 2 * PAGE, MS_ASYNC | MS_SYNC));
  SHOW(msync(map + 1, PAGE, MS_SYNC));
  SHOW(msync(map, PAGE, 0x100));
  // After all is unmapped and closed the file has it.
  SHOW(munmap(map, 2 * PAGE));
  SHOW(munmap(twice, PAGE));
  SHOW(munmap(seen, 2 * PAGE));
  close(fd);
  close(other);
  fd = open(name, O_RDONLY);
  memset(back, 0, sizeof back);
  pread(fd, back, 3, PAGE);
  printf("%s\n", back);
  struct stat status;
  fstat(fd, &status);
  printf("%ld\n", (long)status.st_size);
  unlink(name);
  return 0;
}
