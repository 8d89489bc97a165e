// exec:
// Descriptors of message queues as files: what they read, their status, and the bytes that a user may have in queues.
#include "files.h"
#include <mqueue.h>
#include <sys/resource.h>

static void show(void) {
  char text[128];
  int fd = mq_open("/everett-files", O_RDONLY);
  long count = read(fd, text, sizeof text);
  printf("%ld: %.*s", count, (int)(count < 0 ? 0 : count), text);
  struct stat status;
  fstat(fd, &status);
  printf("mode %o size %d links %d owner %d %d\n", status.st_mode, (int)status.st_size, (int)status.st_nlink,
         status.st_uid, status.st_gid);
  mq_close(fd);
  fflush(stdout);
}

int main(void) {
  struct mq_attr small = {.mq_maxmsg = 4, .mq_msgsize = 16};
  mq_unlink("/everett-files");
  umask(022);
  mqd_t queue = mq_open("/everett-files", O_CREAT | O_RDWR, 0646, &small);
  show();
  mq_send(queue, "hello", 5, 1);
  mq_send(queue, "you", 3, 2);
  show();
  char byte[4];
  TRY(read(queue, byte, 4));
  TRY(read(queue, byte, 4));
  printf("%.4s\n", byte);
  TRY(write(queue, byte, 4));
  char message[16];
  mq_receive(queue, message, sizeof message, NULL);
  mq_receive(queue, message, sizeof message, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  signal(SIGUSR1, SIG_IGN);
  TRY(mq_notify(queue, &event));
  char text[128] = "";
  mqd_t again = mq_open("/everett-files", O_RDONLY);
  read(again, text, sizeof text - 1);
  *strstr(text, "NOTIFY_PID") = 0;
  printf("%s\n", text);
  struct stat before, after;
  fstat(queue, &before);
  sleep(2);
  mq_send(queue, "x", 1, 0);
  fstat(queue, &after);
  printf("times %d %d %d %d\n", after.st_mtim.tv_sec != before.st_mtim.tv_sec,
         after.st_atim.tv_sec != before.st_atim.tv_sec, after.st_ctim.tv_sec != before.st_ctim.tv_sec,
         (int)after.st_mtim.tv_nsec);
  mq_close(queue);
  mq_unlink("/everett-files");
  // A user whom nobody else is.
  TRY(setuid(54322));
  struct rlimit limit = {10000, 10000};
  TRY(setrlimit(RLIMIT_MSGQUEUE, &limit));
  struct mq_attr large = {.mq_maxmsg = 10, .mq_msgsize = 1000}, half = {.mq_maxmsg = 10, .mq_msgsize = 400};
  TRY(mq_open("/everett-large", O_CREAT | O_RDWR, 0600, &large));
  TRY(mq_open("/everett-half", O_CREAT | O_RDWR, 0600, &half) < 0);
  TRY(mq_open("/everett-other", O_CREAT | O_RDWR, 0600, &half) < 0);
  TRY(mq_open("/everett-third", O_CREAT | O_RDWR, 0600, &half));
  TRY(mq_unlink("/everett-half"));
  TRY(mq_unlink("/everett-other"));
  return 0;
}
