// exec:
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
  const char *name = "/tmp/everett-test-file";
  FILE *file = fopen(name, "w+");
  if (!file)
    return 1;
  fprintf(file, "line %d\n", 1);
  fputs("line 2\n", file);
  fputc('3', file);
  fwrite("\nend", 1, 4, file);
  printf("%ld\n", ftell(file));
  rewind(file);
  char line[32];
  while (fgets(line, sizeof line, file))
    printf("<%s>", line);
  puts("");
  fseek(file, 5, SEEK_SET);
  printf("%c\n", fgetc(file));
  fseek(file, -3, SEEK_END);
  printf("%zu %.3s\n", fread(line, 1, 10, file), line);
  fclose(file);
  file = fopen(name, "a");
  fputs("!", file);
  fclose(file);
  struct stat status;
  printf("%d %ld %d\n", stat(name, &status), (long)status.st_size, S_ISREG(status.st_mode));
  int fd = open(name, O_RDWR);
  printf("%ld\n", (long)lseek(fd, 0, SEEK_END));
  printf("%ld %ld\n", (long)pwrite(fd, "LINE", 4, 0), (long)pread(fd, line, 6, 0));
  printf("%.6s\n", line);
  printf("%d\n", ftruncate(fd, 4));
  close(fd);
  printf("%d %d\n", (int)read(fd, line, 1), errno == EBADF);
  printf("%d %d\n", unlink(name), access(name, F_OK));
  printf("%d\n", fopen(name, "r") == NULL && errno == ENOENT);
  FILE *temporary = tmpfile();
  fprintf(temporary, "%s %d", "temporary", 77);
  rewind(temporary);
  char word[16];
  int number;
  printf("%d %s %d\n", fscanf(temporary, "%15s %d", word, &number), word, number);
  fclose(temporary);
  char *text;
  size_t size;
  FILE *memory = open_memstream(&text, &size);
  fprintf(memory, "%05d|%s", 42, "stream");
  fclose(memory);
  printf("%zu %s\n", size, text);
  free(text);
  FILE *reading = fmemopen("10 20", 5, "r");
  int a, b;
  printf("%d %d\n", fscanf(reading, "%d %d", &a, &b), a + b);
  fclose(reading);
  return 0;
}
