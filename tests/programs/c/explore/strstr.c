// run:
// args: --sym-arg 4
// finding: user-report 10
#include <everett.h>
#include <string.h>

int main(int argc, char **argv) {
  char *found = strstr(argv[argc - 1], "xy");
  if (found && found != argv[1] && found[2] == 'z')
    everett_report("?xyz"); // here
  return 0;
}
