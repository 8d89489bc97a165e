// exec:
#include "io_cases.h"
#include <sys/inotify.h>

static int fd;

static void show_events(const char *when) {
  char buffer[4096] __attribute__((aligned(8)));
  errno = 0;
  long got = read(fd, buffer, sizeof buffer);
  printf("%s:%s", when, got < 0 ? error_name(errno) : "");
  uint32_t cookie = 0;
  for (long at = 0; at < got;) {
    struct inotify_event *event = (struct inotify_event *)(buffer + at);
    printf(" [%d %#x %u %s", event->wd, event->mask, event->len, event->len ? event->name : "-");
    if (event->cookie)
      printf(" %s", cookie == event->cookie ? "same" : "new");
    cookie = event->cookie;
    printf("]");
    at += sizeof *event + event->len;
  }
  printf("\n");
}

int main(void) {
  char folder[] = "/tmp/everett-inotify-XXXXXX", buffer[64];
  if (!mkdtemp(folder) || chdir(folder))
    return 1;
  SHOW(inotify_init1(1));
  fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  SHOW(fcntl(fd, F_GETFD));
  int w = SHOW(inotify_add_watch(fd, ".", IN_ALL_EVENTS));
  show_events("nothing");
  EVENTS(fd);
  int file = open("a", O_CREAT | O_RDWR, 0600);
  EVENTS(fd);
  show_events("created");
  write(file, "hello", 5);
  write(file, "hello", 5);
  show_events("written twice");
  lseek(file, 0, SEEK_SET);
  read(file, buffer, 3);
  read(file, buffer, 0);
  show_events("read");
  ftruncate(file, 2);
  show_events("cut");
  fchmod(file, 0644);
  show_events("mode");
  close(file);
  show_events("closed");
  file = open("a", O_RDONLY);
  int second = dup(file);
  close(file);
  show_events("opened, one of two closed");
  close(second);
  show_events("closed");
  int own = SHOW(inotify_add_watch(fd, "a", IN_ALL_EVENTS));
  file = open("a", O_WRONLY | O_TRUNC);
  write(file, "x", 1);
  close(file);
  show_events("file and folder");
  rename("a", "b");
  show_events("moved");
  link("b", "c");
  show_events("linked");
  mkdir("sub", 0700);
  show_events("folder made");
  rename("b", "sub/b");
  show_events("moved out");
  rename("sub/b", "b");
  show_events("moved back");
  rmdir("sub");
  show_events("folder removed");
  unlink("c");
  show_events("one name gone");
  unlink("b");
  show_events("file gone");
  SHOW(inotify_rm_watch(fd, own));
  symlink("nowhere", "l");
  show_events("symbolic link");
  SHOW(inotify_add_watch(fd, "l", IN_OPEN));
  SHOW(inotify_add_watch(fd, "missing", IN_OPEN));
  int same = SHOW(inotify_add_watch(fd, ".", IN_CREATE));
  SHOW(same == w);
  close(open("d", O_CREAT | O_WRONLY, 0600));
  show_events("only creation");
  SHOW(inotify_add_watch(fd, ".", IN_DELETE | IN_MASK_ADD));
  close(open("e", O_CREAT | O_WRONLY, 0600));
  unlink("e");
  show_events("creation and removal");
  SHOW(inotify_add_watch(fd, ".", IN_CREATE | IN_MASK_CREATE));
  SHOW(inotify_add_watch(fd, "d", IN_OPEN | IN_ONLYDIR));
  SHOW(inotify_add_watch(fd, ".", 0));
  SHOW(inotify_add_watch(0, ".", IN_OPEN) == -1);
  SHOW(inotify_add_watch(999, ".", IN_OPEN));
  SHOW(inotify_rm_watch(fd, 77));
  SHOW(inotify_add_watch(fd, ".", IN_CREATE | IN_ONESHOT));
  close(open("f", O_CREAT | O_WRONLY, 0600));
  close(open("g", O_CREAT | O_WRONLY, 0600));
  show_events("one shot");
  int d = SHOW(inotify_add_watch(fd, "d", IN_OPEN));
  SHOW(inotify_rm_watch(fd, d));
  show_events("watch removed");
  SHOW(inotify_add_watch(fd, ".", IN_CREATE));
  close(open("a-longer-name-than-before", O_CREAT | O_WRONLY, 0600));
  int available;
  ioctl(fd, FIONREAD, &available);
  SHOW(available);
  SHOW(read(fd, buffer, 20));
  SHOW(read(fd, buffer, 64));
  file = open("h", O_CREAT | O_WRONLY, 0600);
  int h = SHOW(inotify_add_watch(fd, "h", IN_DELETE_SELF | IN_CLOSE));
  SHOW(h);
  show_events("made");
  unlink("h");
  show_events("removed while open");
  close(file);
  show_events("closed");
  rename("f", "g");
  show_events("moved over another");

  int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 1};
  epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
  SHOW(epoll_wait(set, &event, 1, 0));
  pid_t child = fork_flushed();
  if (!child) {
    sleep_ms(10);
    close(open("from-child", O_CREAT | O_WRONLY, 0600));
    end_child(0);
  }
  SHOW(epoll_wait(set, &event, 1, -1));
  wait_for(child);
  fcntl(fd, F_SETFL, 0);
  show_events("from the child");
  const char *left[] = {"l", "d", "g", "a-longer-name-than-before", "from-child"};
  for (int i = 0; i < 5; i++)
    unlink(left[i]);
  SHOW(inotify_add_watch(fd, ".", IN_DELETE_SELF));
  SHOW(chdir("/"));
  SHOW(rmdir(folder));
  show_events("folder itself gone");
  return 0;
}
