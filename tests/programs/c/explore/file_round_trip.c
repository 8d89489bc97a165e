// run:
// finding: user-report 20
#include <everett.h>
#include <stdio.h>

// Symbolic bytes go through a file and come back as what they were.
int main(void) {
  unsigned char c = everett_symbolic_u8("c");
  FILE *file = fopen("/tmp/everett-round-trip", "w+");
  if (!file)
    return 1;
  fputc(c ^ 0x20, file);
  rewind(file);
  int back = fgetc(file);
  fclose(file);
  remove("/tmp/everett-round-trip");
  if (back != (c ^ 0x20))
    return 2;
  if (back == 'Q')
    everett_report("q"); // here
  return 0;
}
