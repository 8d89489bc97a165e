// exec:
#include "io_cases.h"

static long add(int fd, uint64_t value) { return write(fd, &value, 8); }

static void take(int fd) {
  uint64_t value = 0;
  errno = 0;
  long got = read(fd, &value, sizeof value);
  printf("read = %ld %s value %llu\n", got, got < 0 ? error_name(errno) : "",
         (unsigned long long)value);
}

static void *writer(void *argument) {
  int fd = *(int *)argument;
  uint64_t one = 1;
  sleep_ms(5);
  write(fd, &one, 8);
  return NULL;
}

static void *reader(void *argument) {
  uint64_t value;
  sleep_ms(5);
  read(*(int *)argument, &value, 8);
  return NULL;
}

int main(void) {
  int fd = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC);
  SHOW(fcntl(fd, F_GETFD));
  SHOW(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
  EVENTS(fd);
  take(fd);
  take(fd);
  EVENTS(fd);
  SHOW(add(fd, 5));
  SHOW(add(fd, 7));
  take(fd);
  SHOW(add(fd, UINT64_MAX));
  SHOW(add(fd, UINT64_MAX - 1));
  EVENTS(fd);
  SHOW(add(fd, 1));
  SHOW(add(fd, 0));
  take(fd);
  char small[4] = {0}, large[16] = {1};
  SHOW(write(fd, small, 4));
  SHOW(write(fd, large, 16));
  SHOW(read(fd, small, 4));
  SHOW(read(fd, large, 16));
  struct iovec two[2] = {{large, 8}, {large, 8}}, torn[2] = {{large, 4}, {large + 4, 4}};
  large[0] = 4;
  SHOW(writev(fd, two, 2));
  SHOW(writev(fd, torn, 2));
  take(fd);
  SHOW(pread(fd, large, 8, 0));
  SHOW(pwrite(fd, large, 8, 0));
  SHOW(eventfd(0, 0x1000));
  SHOW(lseek(fd, 0, SEEK_SET));

  int semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
  take(semaphore);
  EVENTS(semaphore);
  take(semaphore);
  take(semaphore);
  EVENTS(semaphore);

  int blocking = eventfd(0, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, writer, &blocking);
  take(blocking);
  pthread_join(thread, NULL);
  SHOW(add(blocking, UINT64_MAX - 2));
  pthread_create(&thread, NULL, reader, &blocking);
  SHOW(add(blocking, 2));
  pthread_join(thread, NULL);
  take(blocking);

  pid_t child = fork_flushed();
  if (!child) {
    add(blocking, 42);
    end_child(0);
  }
  take(blocking);
  SHOW(wait_for(child));
  int other = dup(blocking);
  add(other, 9);
  close(other);
  take(blocking);
  return 0;
}
