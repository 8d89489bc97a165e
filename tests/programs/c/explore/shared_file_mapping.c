// Two processes, a file that both map, and calls that read, write, cut and lengthen it. Shared memory of System V and
// a lock in the file go the same way.
// run:
// paths: 4
#include <everett.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct shared {
  pthread_mutex_t lock;
  int turns;
};

static void show(const char *what, int value) { printf("%s %d\n", what, value); }

static void take_turns(struct shared *shared) {
  for (int i = 0; i < 20; i++) {
    pthread_mutex_lock(&shared->lock);
    shared->turns++;
    usleep(10);
    pthread_mutex_unlock(&shared->lock);
  }
}

int main(void) {
  setvbuf(stdout, 0, _IONBF, 0);
  unsigned char where = everett_symbolic_u8("where");
  everett_assume(where < 2);
  unsigned char what = everett_symbolic_u8("what");
  int fd = open("/tmp/both", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || ftruncate(fd, 2 * PAGE))
    return 1;
  // The lock lies in the second page.
  pwrite(fd, "hello", 5, 0);
  char *map = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char *seen = mmap(0, PAGE, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED || seen == MAP_FAILED)
    return 2;
  unlink("/tmp/both");
  struct shared *shared = (struct shared *)(map + PAGE);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->lock, &attributes);
  int segment = shmget(IPC_PRIVATE, 100, 0600);
  int *counter = shmat(segment, 0, 0);
  shmctl(segment, IPC_RMID, 0);

  // What is written through the mapping is read, and the other way round; input stays input.
  map[where == 1 ? 1 : 4] = (char)what;
  char text[6] = "";
  pread(fd, text, 5, 0);
  show("read", text[where == 1 ? 1 : 4] == (char)what);
  pwrite(fd, "J", 1, 0);
  show("mapped", map[0] == 'J' && seen[0] == 'J');
  if (what == 7)
    show("seven", seen[1] == 7);

  pid_t child = fork();
  if (!child) {
    take_turns(shared);
    map[10] = 'c';
    *counter = 42;
    ftruncate(fd, 2 * PAGE + 100);
    map[2 * PAGE + 99] = 'e';
    msync(map, PAGE, MS_SYNC);
    _exit(shared->turns > 20);
  }
  take_turns(shared);
  int status;
  waitpid(child, &status, 0);
  show("turns", shared->turns);
  show("child", map[10] == 'c' && *counter == 42);
  // The file has become longer; what is read into the mapping is in the file.
  show("longer", (int)lseek(fd, 0, SEEK_END));
  show("end", map[2 * PAGE + 99]);
  int pipes[2];
  pipe(pipes);
  write(pipes[1], "through", 7);
  show("into", (int)read(pipes[0], map + 20, 7));
  pread(fd, text, 5, 20);
  printf("%s\n", text);
  munmap(map, 3 * PAGE);
  map = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  map[0] = 'P';
  show("private", seen[0]);
  return 0;
}
