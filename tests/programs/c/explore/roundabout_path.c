// run: --max-paths 120
// args: --sym-arg 4 --sym-file ab 1
#include <errno.h>
#include <fcntl.h>

// A path in a roundabout form (./ab, x//y) is compared name by name with what there is. Which bytes a
// name has that names nothing does not matter: there are as many paths as ways to put slashes and dots,
// about 80, and one or two for short names of folders on the way to the program.
int main(int argc, char **argv) {
  (void)argc;
  int fd = open(argv[1], O_RDONLY);
  if (fd >= 0) return 0;
  return errno == ENOENT ? 1 : errno == ENOTDIR ? 2 : 3;
}
