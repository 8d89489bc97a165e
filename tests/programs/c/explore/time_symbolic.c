// run:
// paths: 2
#include <everett.h>
#include <time.h>

int main(void) {
  struct tm tm = {0};
  tm.tm_year = 124;
  tm.tm_mon = everett_symbolic_u8("month") % 12;
  if (tm.tm_mon == 1)
    return 29;
  return 0;
}
