// exec:
#include "memory_cases.h"

int main(void) {
  int *counter = mmap(0, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int *own = mmap(0, PAGE, RW, ANON, -1, 0);
  *counter = 1;
  *own = 1;
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (child == 0) {
      *counter += 10;
      *own += 10;
      // What a grandchild does shows as well.
      if (i == 1) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
          *counter += 100;
          _exit(0);
        }
        waitpid(grandchild, 0, 0);
      }
      munmap(counter, PAGE);
      _exit(*own);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%d %d %d\n", *counter, *own, WEXITSTATUS(status));
  }

  // To and fro, told by pipes.
  char *text = mmap(0, 4 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int there[2], back[2];
  pipe(there);
  pipe(back);
  char byte;
  if (fork() == 0) {
    for (int i = 0; i < 3; i++) {
      read(there[0], &byte, 1);
      printf("child: %s\n", text + i * 1000);
      fflush(stdout);
      sprintf(text + i * 1000, "answer %d", i);
      write(back[1], "x", 1);
    }
    _exit(0);
  }
  for (int i = 0; i < 3; i++) {
    sprintf(text + i * 1000, "question %d", i);
    fflush(stdout);
    write(there[1], "x", 1);
    read(back[0], &byte, 1);
    printf("parent: %s\n", text + i * 1000);
    fflush(stdout);
  }
  wait(0);

  // A file between processes that open it by themselves.
  const char *name = "/tmp/everett_shared_fork";
  int fd = new_file(name, "", PAGE);
  char *map = mmap(0, PAGE, RW, MAP_SHARED, fd, 0);
  fflush(stdout);
  if (fork() == 0) {
    munmap(map, PAGE);
    int mine = open(name, O_RDWR);
    char *other = mmap(0, PAGE, RW, MAP_SHARED, mine, 0);
    strcpy(other, "from the child");
    pwrite(mine, "by write", 8, 100);
    _exit(0);
  }
  wait(0);
  printf("%s, %s\n", map, map + 100);
  // Protection is each process's own.
  fflush(stdout);
  if (fork() == 0) {
    mprotect(map, PAGE, PROT_READ);
    _exit(0);
  }
  wait(0);
  map[0] = 'F';
  printf("%s\n", map);
  // The pages outlive the process that made them.
  unlink(name);
  close(fd);
  fflush(stdout);
  if (fork() == 0) {
    strcpy(map, "last words");
    _exit(0);
  }
  wait(0);
  printf("%s\n", map);
  return 0;
}
