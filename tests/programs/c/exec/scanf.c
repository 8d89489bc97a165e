// exec:
// stdin: 42 -17 0x1f hello 3.25 word,rest 077 c 12:34:56\n99 bottles\n
#include <stdio.h>

int main(void) {
  int a, b, c, o, h, m, s;
  char word[16], before[16], after[16], ch;
  double d;
  printf("%d\n", scanf("%d %d %i %15s %lf", &a, &b, &c, word, &d));
  printf("%d %d %d %s %g\n", a, b, c, word, d);
  printf("%d\n", scanf(" %15[^,],%15s %i %c", before, after, &o, &ch));
  printf("%s %s %d %c\n", before, after, o, ch);
  printf("%d\n", scanf("%d:%d:%d", &h, &m, &s));
  printf("%d %d %d\n", h, m, s);
  printf("%d\n", scanf("%d %*s", &a));
  printf("%d\n", a);
  printf("%d\n", scanf("%d", &a));
  return 0;
}
