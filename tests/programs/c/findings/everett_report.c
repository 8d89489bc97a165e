// run:
// paths: 2
// finding: user-report 8
#include <everett.h>

int main(void) {
  if (everett_range(0, 3, "x") == 2)
    everett_report("two"); // here
  return 0;
}
