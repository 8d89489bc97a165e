// run:
// paths: 2
// finding: user-report 9
#include <klee/klee.h>

int main(void) {
  int x = klee_range(0, 10, "x");
  if (x == 9)
    klee_report_error(__FILE__, __LINE__, "nine", "user"); // here
  return 0;
}
