// run:
// paths: 3
#include <everett.h>
#include <setjmp.h>

static jmp_buf handler;

static int parse(int value) {
  if (value > 100)
    longjmp(handler, 1);
  if (value < -100)
    longjmp(handler, 2);
  return 0;
}

int main(void) {
  int error = setjmp(handler);
  if (error)
    return 10 + error;
  return parse(everett_symbolic_i8("value"));
}
