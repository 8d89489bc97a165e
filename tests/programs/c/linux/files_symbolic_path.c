// run:
// args: --sym-arg 6 --sym-file word 3
// paths: 12
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>

// A symbolic path is that of a file that exists, or of none. Six other lengths, one other beginning, the two files,
// "dir/." and "dir//", and all those that exist nowhere: twelve paths.
int main(int argc, char **argv) {
  (void)argc;
  if (strlen(argv[1]) != 5 || memcmp(argv[1], "dir/", 4) != 0) return 0;
  mkdir("dir", 0755);
  close(open("dir/a", O_CREAT | O_WRONLY, 0644));
  close(open("dir/b", O_CREAT | O_WRONLY, 0644));
  int fd = open(argv[1], O_RDONLY);
  if (fd >= 0) return argv[1][4];
  return errno == ENOENT ? 3 : 4;
}
