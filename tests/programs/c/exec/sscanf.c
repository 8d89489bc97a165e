// exec:
#include <stdio.h>

int main(void) {
  int a = 0, n = 0;
  unsigned u = 0;
  long l = 0;
  float f = 0;
  long double ld = 0;
  char text[10] = "";
  short sh = 0;
  signed char hh = 0;
  printf("%d\n", sscanf("10 20 30", "%d%n", &a, &n));
  printf("%d %d\n", a, n);
  printf("%d\n", sscanf("deadBEEF 777 -9999999999", "%x %o %ld", &u, (unsigned *)&a, &l));
  printf("%x %o %ld\n", u, a, l);
  printf("%d\n", sscanf("1.5e3 2.25", "%f %Lf", &f, &ld));
  printf("%g %Lg\n", f, ld);
  printf("%d %s\n", sscanf("abcdefghijklmnop", "%5s", text), text);
  printf("%d\n", sscanf("70000 300", "%hd %hhd", &sh, &hh));
  printf("%d %d\n", sh, hh);
  printf("%d\n", sscanf("x", "%d", &a));
  printf("%d\n", sscanf("", "%d", &a));
  printf("%d %s\n", sscanf("  12ab", "%*d%9[a-c]", text), text);
  return 0;
}
