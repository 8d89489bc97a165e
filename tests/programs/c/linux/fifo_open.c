// exec:
// FIFOs by name: opening waits for the other end.
#include "io_cases.h"

static char name[] = "/tmp/everett-fifo-XXXXXX";

static void *open_reader(void *unused) {
  (void)unused;
  return (void *)(long)open(name, O_RDONLY);
}

int main(void) {
  if (mkstemp(name) < 0)
    return 1;
  unlink(name);
  SHOW(mkfifo(name, 0600));
  SHOW(mkfifo(name, 0600));
  struct stat status;
  stat(name, &status);
  printf("%o\n", status.st_mode & S_IFMT);
  SHOW(open(name, O_WRONLY | O_NONBLOCK));
  int reader = open(name, O_RDONLY | O_NONBLOCK);
  EVENTS(reader);
  char buffer[64];
  SHOW(read(reader, buffer, 10));
  int writer = open(name, O_WRONLY | O_NONBLOCK);
  SHOW(read(reader, buffer, 10));
  SHOW(write(writer, "hello", 5));
  EVENTS(reader);
  EVENTS(writer);
  SHOW(read(reader, buffer, 10));
  close(writer);
  EVENTS(reader);
  SHOW(read(reader, buffer, 10));
  writer = open(name, O_WRONLY);
  EVENTS(reader);
  signal(SIGPIPE, SIG_IGN);
  close(reader);
  EVENTS(writer);
  SHOW(write(writer, "x", 1));
  reader = open(name, O_RDONLY);
  SHOW(write(writer, "again", 5));
  close(writer);
  SHOW(read(reader, buffer, 64));
  SHOW(read(reader, buffer, 64));
  close(reader);

  int both = open(name, O_RDWR);
  SHOW(write(both, "abc", 3));
  EVENTS(both);
  SHOW(read(both, buffer, 64));
  EVENTS(both);
  close(both);

  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, open_reader, NULL);
  sleep_ms(10);
  writer = open(name, O_WRONLY);
  pthread_join(thread, &result);
  reader = (int)(long)result;
  SHOW(write(writer, "met", 3));
  SHOW(read(reader, buffer, 64));
  close(reader);
  close(writer);

  pid_t child = fork_flushed();
  if (!child) {
    int fd = open(name, O_WRONLY);
    write(fd, "from the child", 14);
    close(fd);
    end_child(0);
  }
  reader = open(name, O_RDONLY);
  long total = 0, got;
  while ((got = read(reader, buffer, 5)) > 0)
    total += got;
  SHOW(total);
  SHOW(wait_for(child));
  close(reader);

  // What nobody has open is forgotten.
  both = open(name, O_RDWR | O_NONBLOCK);
  write(both, "lost", 4);
  close(both);
  both = open(name, O_RDWR | O_NONBLOCK);
  SHOW(read(both, buffer, 64));
  SHOW(lseek(both, 0, SEEK_SET));
  SHOW(pread(both, buffer, 1, 0));
  SHOW(fcntl(both, F_GETPIPE_SZ));
  int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  SHOW(epoll_ctl(set, EPOLL_CTL_ADD, both, &event));
  write(both, "x", 1);
  SHOW(epoll_wait(set, &event, 1, 0));
  SHOW(unlink(name));
  SHOW(read(both, buffer, 64));
  return 0;
}
