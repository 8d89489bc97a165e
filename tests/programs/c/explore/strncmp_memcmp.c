// run:
// finding: user-report 10
#include <everett.h>
#include <string.h>

int main(void) {
  char header[12];
  everett_make_symbolic(header, sizeof header, "header");
  if (strncmp(header, "RIFF", 4) == 0 && memcmp(header + 8, "WAVE", 4) == 0 && header[4] == header[5] + 1)
    everett_report("a wave file"); // here
  return 0;
}
