// exec:
#include "memory_cases.h"
#include <sys/ipc.h>
#include <sys/shm.h>

int main(void) {
  int id = shmget(IPC_PRIVATE, 5000, IPC_CREAT | 0600);
  printf("%d\n", id >= 0);
  struct shmid_ds status;
  SHOW(shmctl(id, IPC_STAT, &status));
  printf("%lu %lu %o %d %d\n", (unsigned long)status.shm_segsz, (unsigned long)status.shm_nattch,
         status.shm_perm.mode, status.shm_cpid == getpid(), status.shm_lpid);
  char *map = shmat(id, 0, 0);
  printf("%d %d %d\n", map != (void *)-1, (uintptr_t)map % PAGE == 0, map[4999]);
  strcpy(map, "parent");
  // Attached twice, it is one memory.
  char *twice = shmat(id, 0, SHM_RDONLY);
  printf("%s %d\n", twice, twice != map);
  int pipes[2];
  pipe(pipes);
  write(pipes[1], "x", 1);
  SHOW(read(pipes[0], twice, 1));
  shmctl(id, IPC_STAT, &status);
  printf("%lu\n", (unsigned long)status.shm_nattch);
  // A child has it, too.
  fflush(stdout);
  if (fork() == 0) {
    shmctl(id, IPC_STAT, &status);
    printf("child: %s %lu\n", map, (unsigned long)status.shm_nattch);
    strcpy(map, "child");
    SHOW(shmdt(map));
    fflush(stdout);
    _exit(0);
  }
  wait(0);
  shmctl(id, IPC_STAT, &status);
  printf("%s %lu\n", twice, (unsigned long)status.shm_nattch);
  SHOW(shmdt(twice));
  SHOW(shmdt(twice));
  SHOW(shmdt(map + PAGE));
  // Removed while it is attached: it stays until the last lets go.
  SHOW(shmctl(id, IPC_RMID, 0));
  printf("%s\n", map);
  SHOW(shmctl(id, IPC_STAT, &status));
  printf("going %d\n", (status.shm_perm.mode & 01000) != 0);
  SHOW(shmdt(map));
  SHOW(shmctl(id, IPC_STAT, &status));
  TELL(shmat(id, 0, 0));

  // Keys.
  key_t key = 0x45564552;
  int old = shmget(key, 1, 0);
  if (old >= 0)
    shmctl(old, IPC_RMID, 0);
  SHOW(shmget(key, PAGE, 0600));
  TELL(shmget(key, PAGE, IPC_CREAT | 0600));
  TELL(shmget(key, PAGE, IPC_CREAT | IPC_EXCL | 0600));
  SHOW(shmget(key, 2 * PAGE, 0600));
  TELL(shmget(key, 0, 0));
  id = shmget(key, 10, 0);
  SHOW(shmget(key, PAGE, 0) == id);
  SHOW(shmget(IPC_PRIVATE, 0, IPC_CREAT | 0600));
  // Where it is wanted.
  char *room = mmap(0, 4 * PAGE, PROT_NONE, ANON, -1, 0);
  TELL(shmat(id, room, 0));
  munmap(room, 4 * PAGE);
  SHOW(shmat(id, room, 0) == room);
  TELL(shmat(id, room + 5, 0));
  SHOW(shmat(id, room + PAGE + 5, SHM_RND) == room + PAGE);
  strcpy(room, "both");
  printf("%s\n", room + PAGE);
  SHOW(shmdt(room));
  SHOW(shmdt(room + PAGE));
  status.shm_perm.uid = getuid();
  status.shm_perm.gid = getgid();
  status.shm_perm.mode = 0640;
  SHOW(shmctl(id, IPC_SET, &status));
  shmctl(id, IPC_STAT, &status);
  printf("%o\n", status.shm_perm.mode);
  SHOW(shmctl(id, 99, &status));
  SHOW(shmctl(id, IPC_RMID, 0));
  SHOW(shmctl(id, IPC_RMID, 0));
  SHOW(shmctl(-1, IPC_RMID, 0));
  return 0;
}
