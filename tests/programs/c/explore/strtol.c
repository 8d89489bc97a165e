// run:
// args: --sym-arg 4
// finding: user-report 11
#include <everett.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  char *end;
  long value = strtol(argv[argc - 1], &end, 16);
  if (value == -0xab && *end == '.')
    everett_report("-ab."); // here
  return 0;
}
