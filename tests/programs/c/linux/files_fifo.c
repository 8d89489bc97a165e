// exec:
#include "files.h"
#include <poll.h>
#include <sys/time.h>

int main(void) {
  start_in("files-fifo");
  TRY(mkfifo("fifo", 0640));
  TRY(mkfifo("fifo", 0640));
  show_status("fifo");
  TRY(mknod("plain", 0644, 0));
  show_status("plain");
  TRY(mknod("socket", S_IFSOCK | 0600, 0));
  show_status("socket");
  TRY(open("socket", O_RDONLY));
  TRY(mknod("null", S_IFCHR | 0666, 0x103));
  TRY(write(open("null", O_WRONLY), "x", 1));
  TRY(mknod("dir", S_IFDIR | 0755, 0));
  TRY(mknod("x/", S_IFIFO | 0644, 0));
  TRY(open("fifo", O_WRONLY | O_NONBLOCK));
  int reader = open("fifo", O_RDONLY | O_NONBLOCK);
  TRY(reader >= 0);
  char text[16] = "";
  TRY(read(reader, text, 16));
  int writer = open("fifo", O_WRONLY | O_NONBLOCK);
  TRY(writer >= 0);
  TRY(read(reader, text, 16));
  TRY(write(writer, "hello", 5));
  TRY(read(reader, text, 16));
  puts(text);
  TRY(lseek(reader, 0, SEEK_CUR));
  struct stat status;
  fstat(reader, &status);
  printf("%o\n", status.st_mode);
  TRY(close(writer));
  TRY(read(reader, text, 16));
  TRY(close(reader));
  // Both ends wait for each other.
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int end = open("fifo", O_WRONLY);
    for (int at = 0; at < 3; at++) write(end, "word ", 5);
    close(end);
    // A second time round.
    end = open("fifo", O_RDONLY);
    long count = read(end, text, 16);
    printf("the child read %ld %.*s\n", count, (int)count, text);
    fflush(stdout);
    _exit(0);
  }
  int end = open("fifo", O_RDONLY);
  long total = 0, count;
  while ((count = read(end, text, 4)) > 0) total += count;
  printf("%ld bytes\n", total);
  close(end);
  end = open("fifo", O_WRONLY);
  write(end, "back", 4);
  close(end);
  waitpid(child, NULL, 0);
  // Whoever opens both ends never waits.
  int both = open("fifo", O_RDWR);
  TRY(write(both, "own", 3));
  TRY(read(both, text, 16));
  struct pollfd polled = {both, POLLIN | POLLOUT, 0};
  TRY(poll(&polled, 1, 0));
  printf("%x\n", polled.revents);
  // Nobody reads any more.
  close(both);
  signal(SIGPIPE, SIG_IGN);
  reader = open("fifo", O_RDONLY | O_NONBLOCK);
  writer = open("fifo", O_WRONLY);
  close(reader);
  TRY(write(writer, "x", 1));
  close(writer);
  // What was left in it is gone with the last who had it open.
  both = open("fifo", O_RDWR);
  write(both, "lost", 4);
  close(both);
  reader = open("fifo", O_RDONLY | O_NONBLOCK);
  TRY(read(reader, text, 16));
  // A signal ends the wait.
  struct sigaction action = {.sa_handler = (void (*)(int))abs};
  sigaction(SIGALRM, &action, NULL);
  TRY(close(reader));
  // Again and again, as the first one may come before the wait.
  struct itimerval often = {{0, 50000}, {0, 50000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  TRY(open("fifo", O_RDONLY));
  setitimer(ITIMER_REAL, &never, NULL);
  // A FIFO without a name goes on.
  both = open("fifo", O_RDWR);
  TRY(unlink("fifo"));
  TRY(write(both, "gone", 4));
  TRY(read(both, text, 16));
  return 0;
}
