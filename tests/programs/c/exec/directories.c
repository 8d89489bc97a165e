// exec:
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
  const char *dir = "/tmp/everett-test-dir";
  // A run that was killed may have left it.
  unlink("/tmp/everett-test-dir/inside");
  rmdir(dir);
  printf("%d\n", mkdir(dir, 0755));
  printf("%d %d\n", mkdir(dir, 0755), errno == EEXIST);
  printf("%d\n", chdir(dir));
  char path[100];
  puts(getcwd(path, sizeof path));
  FILE *file = fopen("inside", "w");
  fclose(file);
  printf("%d %d\n", rmdir(dir), errno == ENOTEMPTY);
  printf("%d\n", unlink("inside"));
  printf("%d\n", chdir("/"));
  printf("%d\n", rmdir(dir));
  printf("%d %d\n", chdir(dir), errno == ENOENT);
  return 0;
}
