// exec:
#include "asleep.h"
#include "memory_cases.h"
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>

union semun {
  int val;
  struct semid_ds *buf;
  unsigned short *array;
};

static int id;

static int change(int number, int by, int flags) {
  struct sembuf operation = {(unsigned short)number, (short)by, (short)flags};
  return semop(id, &operation, 1);
}

static int value(int number) { return semctl(id, number, GETVAL); }

static void nothing(int signal) { (void)signal; }

static void signal_later(void) {
  if (fork() == 0) {
    until_asleep(getppid());
    kill(getppid(), SIGALRM);
    _exit(0);
  }
}

int main(void) {
  id = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
  printf("%d %d %d %d\n", id >= 0, value(0), value(1), value(2));
  SHOW(semctl(id, 0, SETVAL, (union semun){.val = 5}));
  SHOW(change(0, -3, 0));
  SHOW(value(0));
  SHOW(change(0, -3, IPC_NOWAIT));
  SHOW(change(0, 0, IPC_NOWAIT));
  SHOW(change(1, 0, 0));
  SHOW(change(3, 1, 0));
  SHOW(semop(id, 0, 0));
  // All or none.
  struct sembuf two[2] = {{0, -2, IPC_NOWAIT}, {1, -1, IPC_NOWAIT}};
  SHOW(semop(id, two, 2));
  SHOW(value(0));
  two[1].sem_op = 4;
  SHOW(semop(id, two, 2));
  printf("%d %d\n", value(0), value(1));
  unsigned short all[3] = {7, 8, 9};
  SHOW(semctl(id, 0, SETALL, (union semun){.array = all}));
  memset(all, 0, sizeof all);
  SHOW(semctl(id, 0, GETALL, (union semun){.array = all}));
  printf("%d %d %d\n", all[0], all[1], all[2]);
  printf("%d\n", semctl(id, 0, GETPID) == getpid());
  SHOW(semctl(id, 0, SETVAL, (union semun){.val = -1}));
  SHOW(semctl(id, 0, SETVAL, (union semun){.val = 32768}));
  SHOW(semctl(id, 3, GETVAL));
  SHOW(change(0, 32767, 0));
  struct semid_ds status;
  SHOW(semctl(id, 0, IPC_STAT, (union semun){.buf = &status}));
  printf("%lu %o\n", (unsigned long)status.sem_nsems, status.sem_perm.mode);

  // A child waits for us, and we for it.
  all[0] = all[1] = all[2] = 0;
  semctl(id, 0, SETALL, (union semun){.array = all});
  fflush(stdout);
  if (fork() == 0) {
    change(0, -2, 0);
    printf("child goes on\n");
    fflush(stdout);
    change(1, 1, 0);
    _exit(0);
  }
  while (semctl(id, 0, GETNCNT) != 1)
    usleep(1000);
  printf("%d %d\n", semctl(id, 0, GETNCNT), semctl(id, 0, GETZCNT));
  change(0, 1, 0);
  printf("parent\n");
  fflush(stdout);
  change(0, 1, 0);
  change(1, -1, 0);
  wait(0);
  printf("%d %d\n", value(0), value(1));
  // Waiting for zero.
  semctl(id, 2, SETVAL, (union semun){.val = 1});
  if (fork() == 0) {
    change(2, 0, 0);
    change(1, 1, 0);
    _exit(0);
  }
  while (semctl(id, 2, GETZCNT) != 1)
    usleep(1000);
  change(2, -1, 0);
  change(1, -1, 0);
  wait(0);
  printf("zero\n");
  // What a process promised to undo.
  semctl(id, 0, SETVAL, (union semun){.val = 3});
  fflush(stdout);
  if (fork() == 0) {
    change(0, -2, SEM_UNDO);
    change(0, 1, SEM_UNDO);
    printf("child: %d\n", value(0));
    fflush(stdout);
    _exit(0);
  }
  wait(0);
  SHOW(value(0));
  // Time.
  struct sembuf operation = {0, -100, 0};
  struct timespec short_time = {0, 20000000}, bad_time = {0, -1};
  SHOW(semtimedop(id, &operation, 1, &short_time));
  SHOW(semtimedop(id, &operation, 1, &bad_time));
  operation.sem_op = -3;
  SHOW(semtimedop(id, &operation, 1, &short_time));
  // Signals.
  struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, 0);
  fflush(stdout);
  signal_later();
  SHOW(change(0, -1, 0));
  wait(0);
  // Removed while somebody waits.
  fflush(stdout);
  if (fork() == 0) {
    SHOW(change(0, -1, 0));
    fflush(stdout);
    _exit(0);
  }
  while (semctl(id, 0, GETNCNT) != 1)
    usleep(1000);
  SHOW(semctl(id, 0, IPC_RMID));
  wait(0);
  SHOW(change(0, 1, 0));
  SHOW(semctl(id, 0, GETVAL));
  key_t key = 0x45564553;
  int old = semget(key, 0, 0);
  if (old >= 0)
    semctl(old, 0, IPC_RMID);
  SHOW(semget(key, 1, 0));
  TELL(semget(key, 2, IPC_CREAT | 0600));
  SHOW(semget(key, 2, IPC_CREAT | IPC_EXCL | 0600));
  SHOW(semget(key, 3, 0));
  TELL(semget(key, 0, 0));
  SHOW(semget(IPC_PRIVATE, 0, 0600));
  semctl(semget(key, 0, 0), 0, IPC_RMID);
  return 0;
}
