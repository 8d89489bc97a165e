// exec:
#include "files.h"

struct record {
  uint64_t inode;
  int64_t next;
  unsigned short size;
  unsigned char type;
  char name[];
};

static long list(int fd, void *room, unsigned size) { return syscall(SYS_getdents64, fd, room, size); }

static int compare(const void *a, const void *b) { return strcmp(a, b); }

int main(void) {
  start_in("files-getdents");
  show_folder(".");
  make_file("file", "");
  mkdir("dir", 0755);
  symlink("file", "link");
  mkfifo("fifo", 0644);
  show_folder(".");
  show_folder("none");
  show_folder("file");
  for (int at = 0; at < 100; at++) {
    char name[40];
    snprintf(name, sizeof name, "dir/%0*d", at % 20 + 1, at);
    make_file(name, "");
  }
  // All names in small pieces, each once.
  int fd = open("dir", O_RDONLY | O_DIRECTORY);
  static char names[128][32];
  int count = 0;
  char room[120];
  long got;
  while ((got = list(fd, room, sizeof room)) > 0) {
    for (long at = 0; at < got; at += ((struct record *)(room + at))->size) {
      struct record *record = (struct record *)(room + at);
      if (record->size % 8) printf("size %d\n", record->size);
      snprintf(names[count++], 32, "%.31s", record->name);
    }
  }
  qsort(names, count, sizeof names[0], compare);
  printf("%d names:", count);
  for (int at = 0; at < count; at++) printf(" %s", names[at]);
  printf("\n");
  TRY(list(fd, room, sizeof room));
  TRY(lseek(fd, 0, SEEK_SET));
  TRY(list(fd, room, sizeof room) > 0);
  TRY(lseek(fd, 0, SEEK_SET));
  TRY(list(fd, room, 10));
  TRY(list(99, room, sizeof room));
  TRY(list(open("file", O_RDONLY), room, sizeof room));
  TRY(read(fd, room, sizeof room));
  // Names that are taken away while they are listed: none is left out.
  DIR *dir = opendir("dir");
  struct dirent *entry;
  int removed = 0;
  while ((entry = readdir(dir))) {
    char path[64];
    snprintf(path, sizeof path, "dir/%.32s", entry->d_name);
    if (entry->d_name[0] != '.' && unlink(path) == 0) removed++;
  }
  printf("%d removed\n", removed);
  rewinddir(dir);
  count = 0;
  while ((entry = readdir(dir))) count++;
  printf("%d left\n", count);
  // seekdir goes back to where telldir was.
  make_file("dir/x", "");
  make_file("dir/y", "");
  rewinddir(dir);
  readdir(dir);
  long place = telldir(dir);
  entry = readdir(dir);
  char first[32];
  snprintf(first, sizeof first, "%.31s", entry->d_name);
  readdir(dir);
  seekdir(dir, place);
  entry = readdir(dir);
  printf("%d\n", strcmp(first, entry->d_name));
  closedir(dir);
  TRY(rmdir("dir"));
  remove_all("dir");
  // A folder that is gone.
  mkdir("gone", 0755);
  fd = open("gone", O_RDONLY);
  rmdir("gone");
  TRY(list(fd, room, sizeof room));
  return 0;
}
