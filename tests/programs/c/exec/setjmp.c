// exec:
#include <setjmp.h>
#include <stdio.h>

static jmp_buf outer, inner;

static void deep(int level) {
  if (level == 0)
    longjmp(inner, 5);
  deep(level - 1);
}

int main(void) {
  volatile int count = 0;
  int value = setjmp(outer);
  count++;
  printf("outer %d %d\n", value, count);
  if (value < 3)
    longjmp(outer, value + 1);
  value = setjmp(inner);
  printf("inner %d\n", value);
  if (value == 0)
    deep(10);
  if (value == 5)
    longjmp(inner, 0);
  sigjmp_buf with_mask;
  if (sigsetjmp(with_mask, 1) == 0)
    siglongjmp(with_mask, 9);
  puts("end");
  return value;
}
