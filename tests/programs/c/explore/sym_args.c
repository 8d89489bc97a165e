// run:
// args: --sym-args 0 2 1
// paths: 5
#include <stdlib.h>

// None, one, or two, where the second is looked at only if the first begins with '-'.
int main(int argc, char **argv) {
  if (argc == 1)
    return 10;
  if (argc == 2)
    return argv[1][0] == '-' ? 20 : 21;
  if (argv[1][0] == '-' && argv[2][0] == 'x')
    return 30;
  return 31;
}
