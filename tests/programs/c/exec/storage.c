// exec:
#include <stdio.h>

static int counter(void) {
  static int count = 10;
  return count++;
}

_Thread_local int local = 5;
static __thread char text[8] = "tls";
static __thread long zero;
extern int later;
int *pointer_to_later = &later;
int later = 44;
static const char *const names[] = {"zero", "one", "two"};
static int matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
static int *middle = &matrix[1][1];

int main(void) {
  counter();
  counter();
  printf("%d\n", counter());
  local += 2;
  text[0] = 'T';
  zero--;
  printf("%d %s %ld %d\n", local, text, zero, *pointer_to_later);
  printf("%s %d %d\n", names[2], *middle, middle[-2]);
  return 0;
}
