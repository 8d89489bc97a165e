// run:
// args: --sym-arg 4
// finding: user-report 9
#include <everett.h>
#include <string.h>

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "open") == 0)
    everett_report("the password was found"); // here
  return 0;
}
