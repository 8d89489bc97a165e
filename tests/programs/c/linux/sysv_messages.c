// exec:
#include "asleep.h"
#include "memory_cases.h"
#include <sched.h>
#include <sys/ipc.h>
#include <sys/msg.h>

struct message {
  long kind;
  char text[10000];
};

static int id;
static struct message message;

static int send(long kind, const char *text, int flags) {
  message.kind = kind;
  strcpy(message.text, text);
  return msgsnd(id, &message, strlen(text) + 1, flags);
}

static void receive(long kind, size_t size, int flags) {
  memset(&message, 0, sizeof message);
  errno = 0;
  long got = msgrcv(id, &message, size, kind, flags);
  printf("receive %ld: %ld %s %ld %s\n", kind, got, error_name(got < 0 ? errno : 0), message.kind, message.text);
}

static void nothing(int signal) { (void)signal; }

static void signal_later(void) {
  if (fork() == 0) {
    until_asleep(getppid());
    kill(getppid(), SIGALRM);
    _exit(0);
  }
}

int main(void) {
  // With the usual limits and no keys, where the machine grants it.
  unshare(CLONE_NEWIPC);
  id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  printf("%d\n", id >= 0);
  SHOW(send(3, "three", 0));
  SHOW(send(1, "one", 0));
  SHOW(send(2, "two", 0));
  SHOW(send(1, "another one", 0));
  SHOW(send(5, "five", 0));
  struct msqid_ds status;
  SHOW(msgctl(id, IPC_STAT, &status));
  printf("%lu %lu %lu %d\n", (unsigned long)status.msg_qnum, (unsigned long)status.__msg_cbytes,
         (unsigned long)status.msg_qbytes, status.msg_lspid == getpid());
  receive(0, 100, 0);
  receive(1, 100, 0);
  receive(-4, 100, 0);
  receive(2, 3, 0);
  receive(2, 3, MSG_NOERROR);
  receive(5, 100, MSG_EXCEPT | IPC_NOWAIT);
  receive(7, 100, IPC_NOWAIT);
  receive(0, 100, 0);
  receive(0, 100, IPC_NOWAIT);
  SHOW(send(0, "none", 0));
  SHOW(send(-1, "none", 0));
  SHOW(send(1, "", 0));
  receive(0, 0, 0);
  receive(0, 1, 0);
  message.kind = 1;
  SHOW(msgsnd(id, &message, 9000, 0));
  SHOW(msgsnd(id, 0, 5, 0));
  SHOW(msgrcv(id, &message, (size_t)-1, 0, IPC_NOWAIT));
  // Full.
  memset(message.text, 'x', sizeof message.text);
  message.kind = 9;
  SHOW(msgsnd(id, &message, 8192, IPC_NOWAIT));
  SHOW(msgsnd(id, &message, 8192, IPC_NOWAIT));
  SHOW(msgsnd(id, &message, 1, IPC_NOWAIT));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    // Waits until there is room.
    SHOW(send(4, "late", 0));
    fflush(stdout);
    _exit(0);
  }
  until_asleep(child);
  msgrcv(id, &message, 8192, 0, 0);
  wait(0);
  receive(4, 100, 0);
  msgrcv(id, &message, 8192, 0, 0);
  // Waits until there is something.
  fflush(stdout);
  if (fork() == 0) {
    receive(6, 100, 0);
    fflush(stdout);
    send(7, "answer", 0);
    _exit(0);
  }
  send(8, "not this one", 0);
  send(6, "this one", 0);
  receive(7, 100, 0);
  wait(0);
  receive(0, 100, 0);
  // Signals.
  struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, 0);
  fflush(stdout);
  signal_later();
  receive(0, 100, 0);
  wait(0);
  // A larger queue.
  msgctl(id, IPC_STAT, &status);
  status.msg_qbytes = 100;
  SHOW(msgctl(id, IPC_SET, &status));
  message.kind = 1;
  SHOW(msgsnd(id, &message, 101, IPC_NOWAIT));
  SHOW(msgsnd(id, &message, 100, IPC_NOWAIT));
  receive(0, 1, MSG_NOERROR);
  // Removed while somebody waits.
  fflush(stdout);
  child = fork();
  if (child == 0) {
    receive(0, 100, 0);
    fflush(stdout);
    _exit(0);
  }
  until_asleep(child);
  SHOW(msgctl(id, IPC_RMID, 0));
  wait(0);
  SHOW(msgctl(id, IPC_STAT, &status));
  receive(0, 100, 0);
  key_t key = 0x45564554;
  int old = msgget(key, 0);
  if (old >= 0)
    msgctl(old, IPC_RMID, 0);
  SHOW(msgget(key, 0));
  TELL(msgget(key, IPC_CREAT | 0600));
  SHOW(msgget(key, IPC_CREAT | IPC_EXCL | 0600));
  SHOW(msgget(key, 0) == msgget(key, 0));
  msgctl(msgget(key, 0), IPC_RMID, 0);
  return 0;
}
