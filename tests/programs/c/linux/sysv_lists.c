// exec:
// The lists of System V objects in /proc/sysvipc.
#include "files.h"
#include <sched.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

// The first line, and that of the object, without ids of objects and processes, and times.
static void show(const char *path, int id, const char *hidden) {
  char line[512];
  FILE *file = fopen(path, "r");
  for (int first = 1; fgets(line, sizeof line, file); first = 0) {
    int key, own;
    if (first) {
      printf("%s", line);
      continue;
    }
    if (sscanf(line, "%d %d", &key, &own) != 2 || own != id) continue;
    int column = 0, shown = 0;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"), column++) {
      if (hidden[column] == '-') continue;
      printf("%s%s", shown++ ? " " : "", word);
    }
    printf("\n");
  }
  fclose(file);
}

static int columns(const char *path) {
  char line[512];
  FILE *file = fopen(path, "r");
  fgets(line, sizeof line, file);
  fgets(line, sizeof line, file);
  fclose(file);
  return strlen(line);
}

int main(void) {
  // Nobody else has these keys, where the machine grants it.
  unshare(CLONE_NEWIPC);
  int segment = shmget(0x1234, 5000, IPC_CREAT | 0640), set = semget(0x1235, 3, IPC_CREAT | 0600);
  int queue = msgget(0x1236, IPC_CREAT | 0666);
  char *at = shmat(segment, NULL, 0);
  at[0] = 1;
  struct { long kind; char text[8]; } message = {1, "message"};
  msgsnd(queue, &message, 7, 0);
  msgsnd(queue, &message, 3, 0);
  show("/proc/sysvipc/shm", segment, "+-++--+++++---++");
  show("/proc/sysvipc/sem", set, "+-++++++--");
  show("/proc/sysvipc/msg", queue, "+-+++--++++---");
  printf("%d %d %d\n", columns("/proc/sysvipc/shm"), columns("/proc/sysvipc/sem"), columns("/proc/sysvipc/msg"));
  shmctl(segment, IPC_RMID, NULL);
  show("/proc/sysvipc/shm", segment, "--++--+---------");
  shmdt(at);
  semctl(set, 0, IPC_RMID);
  msgctl(queue, IPC_RMID, NULL);
  return 0;
}
