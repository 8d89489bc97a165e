// run:
// args: --sym-arg 6
// paths: 7
#include <string.h>

int main(int argc, char **argv) {
  return (int)strlen(argv[argc - 1]);
}
