// build: -O2
// exec:
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf handlers[10];
static int depth;

static void raise_error(int code) { longjmp(handlers[depth - 1], code); }

static int divide(int a, int b) {
  if (b == 0)
    raise_error(1);
  if (b < 0)
    raise_error(2);
  return a / b;
}

static int protect(int a, int b) {
  volatile int result = -100;
  char *memory = malloc(10);
  switch (setjmp(handlers[depth++])) {
  case 0:
    result = divide(a, b);
    break;
  case 1:
    result = -1;
    break;
  default:
    result = -2;
  }
  depth--;
  free(memory);
  return result;
}

int main(void) {
  for (int i = -2; i < 3; i++)
    printf("%d ", protect(10, i));
  printf("%d\n", depth);
  return 0;
}
