// run:
// finding: null-pointer 18
// finding: read-only-write 18
// finding: wild-pointer 18
#include <everett.h>

struct node {
  char name[8];
  int *value;
};

// The whole node comes from outside, with the pointer in it.
int main(void) {
  struct node node;
  everett_make_symbolic(&node, sizeof node, "node");
  if (node.name[0] != 'k')
    return 0;
  *node.value = 1; // here
  everett_silent_exit(0); // objects lie elsewhere natively, so no test is wanted
}
