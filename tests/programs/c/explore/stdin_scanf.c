// run:
// args: --sym-stdin 3
// finding: user-report 10
#include <everett.h>
#include <stdio.h>

int main(void) {
  int value;
  if (scanf("%d", &value) == 1 && value == -42)
    everett_report("-42"); // here
  return 0;
}
