// run:
// args: --sym-stdin 3
#include <stdio.h>

int main(void) {
  int depth = 0, deepest = 0, c;
  while ((c = getchar()) != EOF) {
    if (c == '(')
      depth++;
    else if (c == ')')
      depth--;
    if (depth < 0)
      return 100;
    if (depth > deepest)
      deepest = depth;
  }
  return depth != 0 ? 101 : deepest;
}
