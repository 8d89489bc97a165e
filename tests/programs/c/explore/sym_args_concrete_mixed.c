// run:
// args: fixed --sym-arg 1 last
// paths: 2
#include <string.h>

int main(int argc, char **argv) {
  if (argc != 4 || strcmp(argv[1], "fixed") != 0 || strcmp(argv[3], "last") != 0)
    return 99;
  if (argv[2][0] == 'q')
    return 1;
  return 0;
}
