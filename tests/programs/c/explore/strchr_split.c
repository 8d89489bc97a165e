// run:
// finding: user-report 15
#include <everett.h>
#include <string.h>

int main(void) {
  char line[8];
  everett_make_symbolic(line, sizeof line, "line");
  line[7] = 0;
  char *equals = strchr(line, '=');
  if (equals == NULL || equals == line)
    return 1;
  *equals = 0;
  if (strcmp(line, "key") == 0 && strcmp(equals + 1, "val") == 0)
    everett_report("key=val"); // here
  return 0;
}
