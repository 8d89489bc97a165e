// exec:
#include <stdio.h>

static int interpret(const char *code) {
  static void *const labels[] = {&&add, &&multiply, &&negate, &&stop};
  int value = 1;
  goto *labels[*code - '0'];
add:
  value += 5;
  goto *labels[*++code - '0'];
multiply:
  value *= 3;
  goto *labels[*++code - '0'];
negate:
  value = -value;
  goto *labels[*++code - '0'];
stop:
  return value;
}

static int duff(int count) {
  int steps = 0, rounds = (count + 3) / 4;
  switch (count % 4) {
  case 0: do { steps++;
  case 3:      steps++;
  case 2:      steps++;
  case 1:      steps++;
          } while (--rounds > 0);
  }
  return steps;
}

static const char *classify(long x) {
  switch (x) {
  case -1: return "minus one";
  case 0 ... 9: return "digit";
  case 100: case 200: case 300: return "hundreds";
  case 1L << 40: return "large";
  default: return "other";
  }
}

int main(void) {
  printf("%d %d\n", interpret("0102013"), interpret("3"));
  for (int i = 1; i < 10; i++)
    printf("%d ", duff(i));
  puts("");
  long values[] = {-1, 0, 5, 9, 10, 100, 200, 1L << 40, 7777};
  for (int i = 0; i < 9; i++)
    printf("%s, ", classify(values[i]));
  puts("");
  int i = 0;
again:
  if (i++ < 3)
    goto again;
  for (int a = 0; a < 5; a++) {
    for (int b = 0; b < 5; b++) {
      if (b == 2)
        continue;
      if (a * b > 6)
        goto out;
      printf("%d", a * b);
    }
  }
out:
  printf(" %d\n", i);
  int x = 5;
  int y = (x++, x += 2, x ?: 9);
  printf("%d %d %d\n", x, y, ({ int t = x * 2; t + 1; }));
  return 0;
}
