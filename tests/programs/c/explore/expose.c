// run:
// paths: 2
#include <everett.h>

int main(void) {
  int term = everett_symbolic_i32("term");
  everett_expose("node", "term", &term, sizeof term);
  if (term == 5)
    return 1;
  return 0;
}
