// exec:
#include <stdio.h>

__attribute__((weak)) int missing(void);
__attribute__((weak)) int present(void) { return 5; }
extern int aliased(void) __attribute__((alias("present")));
static int hidden_twin(void) __attribute__((alias("present")));
__attribute__((weak)) extern int absent_variable;

int main(void) {
  printf("%d\n", missing ? missing() : -1);
  printf("%d %d %d\n", present(), aliased(), hidden_twin());
  printf("%d\n", &absent_variable == 0);
  return 0;
}
