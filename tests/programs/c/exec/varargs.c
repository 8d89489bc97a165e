// exec:
#include <stdarg.h>
#include <stdio.h>

struct small { int a, b; };
struct mixed { double d; long l; };
struct large { long values[4]; };
struct floats { float x, y; };

static void show(int count, const char *kinds, ...) {
  va_list list, again;
  va_start(list, kinds);
  va_copy(again, list);
  for (int round = 0; round < 2; round++) {
    va_list *from = round ? &again : &list;
    for (int i = 0; i < count; i++)
      switch (kinds[i]) {
      case 'i': printf("%d ", va_arg(*from, int)); break;
      case 'l': printf("%ld ", va_arg(*from, long)); break;
      case 'd': printf("%g ", va_arg(*from, double)); break;
      case 'L': printf("%Lg ", va_arg(*from, long double)); break;
      case 's': printf("%s ", va_arg(*from, char *)); break;
      case 'S': { struct small s = va_arg(*from, struct small); printf("{%d %d} ", s.a, s.b); break; }
      case 'M': { struct mixed m = va_arg(*from, struct mixed); printf("{%g %ld} ", m.d, m.l); break; }
      case 'B': { struct large b = va_arg(*from, struct large); printf("{%ld %ld} ", b.values[0], b.values[3]); break; }
      case 'F': { struct floats f = va_arg(*from, struct floats); printf("{%g %g} ", f.x, f.y); break; }
      case 'w': { __int128 w = va_arg(*from, __int128); printf("%lx:%lx ", (long)(w >> 64), (long)w); break; }
      }
    puts("");
  }
  va_end(again);
  va_end(list);
}

static int sum(int count, ...) {
  va_list list;
  va_start(list, count);
  int total = 0;
  while (count--)
    total += va_arg(list, int);
  va_end(list);
  return total;
}

static void forward(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
}

int main(void) {
  struct small s = {1, 2};
  struct mixed m = {2.5, -9};
  struct large b = {{10, 20, 30, 40}};
  struct floats f = {0.5f, 0.25f};
  __int128 w = ((__int128)5 << 64) | 6;
  show(3, "ids", 1, 2.5, "three");
  show(12, "iiiiiiiiiiii", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
  show(10, "dddddddddd", 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.);
  show(6, "LiLdLl", 1.5L, 2, 3.5L, 4.5, 5.5L, 6L);
  show(5, "SMBFS", s, m, b, f, s);
  show(9, "iiiSMidBM", 1, 2, 3, s, m, 4, 5.5, b, m);
  show(6, "iwiwiw", 1, w, 2, w, 3, w);
  printf("%d\n", sum(20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20));
  forward("%s %d %g %Lg\n", "forwarded", 1, 2.0, 3.0L);
  return 0;
}
