// exec:
#include <stdio.h>

typedef int (*operation)(int, int);
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static int mul(int a, int b) { return a * b; }
static operation pick(char c) { return c == '+' ? add : c == '-' ? sub : mul; }
static int apply(operation f, int a, int b) { return f(a, b); }

struct shape {
  double (*area)(const struct shape *);
  double a, b;
};
static double square(const struct shape *s) { return s->a * s->a; }
static double rectangle(const struct shape *s) { return s->a * s->b; }

int main(void) {
  operation table[] = {add, sub, mul};
  for (int i = 0; i < 3; i++)
    printf("%d ", table[i](7, 3));
  printf("%d %d\n", apply(pick('-'), 1, 2), (*pick('*'))(6, 7));
  struct shape shapes[] = {{square, 3, 0}, {rectangle, 2, 5}};
  for (int i = 0; i < 2; i++)
    printf("%g ", shapes[i].area(&shapes[i]));
  printf("%d %d\n", table[0] == add, pick('+') != pick('-'));
  int (*print)(const char *, ...) = printf;
  print("%s %d\n", "through a pointer", 5);
  return 0;
}
