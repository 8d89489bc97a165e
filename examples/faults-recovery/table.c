/* A small store of tables whose recovery code unlocks twice (AFEX, Fig. 3.6).

   Caches and lines of the log may fail. Operations on tables may not: they report the error, and the program ends with
   3. But if the last step of creating a table fails, closing its file, the lock is free already, and the recovery frees
   it again. As in builds of MySQL with checked mutexes, that aborts.

   `fixed` as argument: the recovery knows whether the lock is held. */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOTES = 40, TABLES = 3, ROWS = 3 };

static pthread_mutex_t tables;
static int is_fixed;

static void lock_tables(void) {
  if (pthread_mutex_lock(&tables)) abort();
}

static void unlock_tables(void) {
  if (pthread_mutex_unlock(&tables)) {
    fputs("trying to unlock a mutex that is not locked\n", stderr);
    abort();
  }
}

/* Writes a file that nobody depends on: a cache, a line of the log. */
static void note(const char *path, int number) {
  char text[32];
  int file = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
  if (file < 0) return;
  write(file, text, snprintf(text, sizeof text, "%d\n", number));
  fsync(file);
  close(file);
}

static int create(const char *path) {
  int is_locked = 1;
  lock_tables();
  int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
  if (file < 0) goto err;
  if (write(file, "rows 0\n", 7) != 7) goto err;
  if (fsync(file)) goto err;
  unlock_tables();
  is_locked = 0;
  if (close(file)) goto err;
  return 0;

err:
  if (!is_fixed || is_locked) unlock_tables();
  return -1;
}

static int insert(const char *path, int row) {
  lock_tables();
  int file = open(path, O_WRONLY | O_APPEND);
  int result = file >= 0 && write(file, &row, sizeof row) == sizeof row && !fsync(file) ? 0 : -1;
  if (file >= 0 && close(file)) result = -1;
  unlock_tables();
  return result;
}

int main(int count, char **words) {
  pthread_mutexattr_t kind;
  is_fixed = count > 1 && !strcmp(words[1], "fixed");
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&tables, &kind);
  for (int number = 0; number < NOTES; number++) note("/cache", number);
  for (int table = 0; table < TABLES; table++) {
    char path[32];
    snprintf(path, sizeof path, "/table-%d", table);
    if (create(path)) return 3;
    for (int row = 0; row < ROWS; row++)
      if (insert(path, row)) return 3;
  }
  for (int number = 0; number < NOTES; number++) note("/log", number);
  return 0;
}
