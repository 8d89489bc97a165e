// run:
// args: --sym-arg 3
// finding: user-report 9
#include <everett.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  if (atoi(argv[argc - 1]) == 137)
    everett_report("137"); // here
  return 0;
}
