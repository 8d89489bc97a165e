// exec:
#include "files.h"

static void show_holes(int fd) {
  long end = lseek(fd, 0, SEEK_END), at = 0;
  while (at < end) {
    long data = lseek(fd, at, SEEK_DATA);
    if (data < 0) {
      printf("then %s\n", error_name(errno));
      return;
    }
    long hole = lseek(fd, data, SEEK_HOLE);
    printf("data %ld-%ld\n", data, hole);
    at = hole;
  }
}

int main(void) {
  start_in("files-sizes");
  int fd = open("file", O_CREAT | O_RDWR, 0644);
  TRY(ftruncate(fd, 10));
  TRY(lseek(fd, 0, SEEK_END));
  TRY(write(fd, "end", 3));
  TRY(truncate("file", 5));
  TRY(lseek(fd, 0, SEEK_CUR));
  char text[32];
  TRY(pread(fd, text, 32, 0));
  TRY(read(fd, text, 32));
  TRY(write(fd, "!", 1));
  TRY(pread(fd, text, 32, 0));
  printf("%d %c\n", text[12], text[13]);
  TRY(ftruncate(fd, -1));
  TRY(truncate("none", 5));
  TRY(truncate(".", 5));
  TRY(truncate("file", -5));
  TRY(truncate("/dev/null", 5));
  TRY(ftruncate(99, 5));
  int reader = open("file", O_RDONLY);
  TRY(ftruncate(reader, 5));
  int ends[2];
  pipe(ends);
  TRY(ftruncate(ends[1], 5));
  // Seeking.
  TRY(lseek(fd, 100, SEEK_SET));
  TRY(lseek(fd, -50, SEEK_CUR));
  TRY(lseek(fd, -51, SEEK_CUR));
  TRY(lseek(fd, -1, SEEK_SET));
  TRY(lseek(fd, 0, 9));
  TRY(lseek(fd, INT64_MAX, SEEK_CUR));
  TRY(lseek(ends[0], 0, SEEK_CUR));
  TRY(lseek(99, 0, SEEK_CUR));
  TRY(lseek(fd, 14, SEEK_DATA));
  TRY(lseek(fd, 14, SEEK_HOLE));
  TRY(lseek(fd, -1, SEEK_HOLE));
  // Holes.
  int holes = open("holes", O_CREAT | O_RDWR, 0644);
  TRY(pwrite(holes, "a", 1, 0));
  TRY(pwrite(holes, "b", 1, 1 << 20));
  TRY(ftruncate(holes, 3 << 20));
  show_holes(holes);
  TRY(pread(holes, text, 4, 100000));
  printf("%d\n", text[0]);
  // Room.
  int room = open("room", O_CREAT | O_RDWR, 0644);
  TRY(fallocate(room, 0, 0, 1000));
  TRY(lseek(room, 0, SEEK_END));
  TRY(fallocate(room, FALLOC_FL_KEEP_SIZE, 500, 5000));
  TRY(lseek(room, 0, SEEK_END));
  TRY(pwrite(room, "0123456789", 10, 0));
  TRY(fallocate(room, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
  TRY(pread(room, text, 10, 0));
  printf("%d %d %d\n", text[1], text[2], text[5]);
  TRY(fallocate(room, FALLOC_FL_PUNCH_HOLE, 2, 3));
  TRY(fallocate(room, 0, -1, 3));
  TRY(fallocate(room, 0, 0, 0));
  TRY(fallocate(reader, 0, 0, 10));
  TRY(fallocate(ends[1], 0, 0, 10));
  TRY(posix_fallocate(room, 0, 2000));
  TRY(lseek(room, 0, SEEK_END));
  // Appending wins over offsets.
  int end = open("file", O_WRONLY | O_APPEND);
  TRY(lseek(end, 0, SEEK_SET));
  TRY(write(end, "tail", 4));
  TRY(lseek(end, 0, SEEK_CUR));
  TRY(pwrite(end, "more", 4, 0));
  show_status("file");
  // Copies.
  TRY(pwrite(room, "copied", 6, 0));
  off_t from = 1, to = 3;
  int copy = open("copy", O_CREAT | O_RDWR, 0644);
  TRY(copy_file_range(room, &from, copy, &to, 4, 0));
  printf("%ld %ld\n", (long)from, (long)to);
  TRY(pread(copy, text, 32, 0));
  printf("%.4s\n", text + 3);
  TRY(lseek(room, 0, SEEK_SET));
  TRY(copy_file_range(room, NULL, copy, NULL, 6, 0));
  TRY(lseek(room, 0, SEEK_CUR));
  TRY(copy_file_range(room, NULL, copy, NULL, 6, 1));
  TRY(copy_file_range(copy, NULL, reader, NULL, 6, 0));
  from = 10000;
  TRY(copy_file_range(room, &from, copy, NULL, 6, 0));
  from = 0, to = 2;
  TRY(copy_file_range(room, &from, room, &to, 6, 0));
  TRY(copy_file_range(ends[0], NULL, copy, NULL, 6, 0));
  TRY(fsync(copy));
  TRY(fdatasync(copy));
  TRY(fsync(ends[0]));
  TRY(fsync(99));
  TRY(syncfs(copy));
  return 0;
}
