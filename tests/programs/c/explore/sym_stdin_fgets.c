// run:
// args: --sym-stdin 6
// finding: user-report 14
#include <everett.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char line[32];
  if (!fgets(line, sizeof line, stdin))
    return 1;
  line[strcspn(line, "\n")] = 0;
  if (strcmp(line, "quit") == 0)
    everett_report("quit"); // here
  return 0;
}
