// exec:
#include <stdint.h>
#include <stdio.h>

#define ONE(name) \
  static long double name(long double x) { \
    __asm__(#name : "+t"(x)); \
    return x; \
  }
ONE(fsin)
ONE(fcos)
ONE(f2xm1)
ONE(fsqrt)
ONE(frndint)

static void print(long double x) { printf("%.17Lg ", x); }

int main(void) {
  print(fsin(0.5L)), print(fcos(0.5L)), print(f2xm1(0.25L)), print(fsqrt(2)), print(frndint(2.5L));
  puts("");
  long double s, c, y = 3, x = 5, t;
  __asm__("fsincos" : "=t"(c), "=u"(s) : "0"(1.25L));
  print(s), print(c);
  __asm__("fpatan" : "=t"(t) : "0"(x), "u"(y) : "st(1)");
  print(t);
  __asm__("fyl2x" : "=t"(t) : "0"(x), "u"(y) : "st(1)");
  print(t);
  __asm__("fyl2xp1" : "=t"(t) : "0"(0.125L), "u"(y) : "st(1)");
  print(t);
  __asm__("fptan; fstp %%st(0)" : "=t"(t) : "0"(0.75L));
  print(t);
  __asm__("fscale" : "=t"(t) : "0"(1.5L), "u"(6.0L));
  print(t);
  long double significand, exponent;
  __asm__("fxtract" : "=t"(significand), "=u"(exponent) : "0"(100.0L));
  print(significand), print(exponent);
  puts("");
  // e^x, as old C libraries compute it.
  double e = 1.5;
  long double result;
  __asm__("fldl2e; fmulp; fld %%st(0); frndint; fsubr %%st, %%st(1); fxch; f2xm1; fld1; faddp;"
          "fscale; fstp %%st(1)"
          : "=t"(result)
          : "0"((long double)e));
  print(result);
  __asm__("fldpi" : "=t"(t));
  print(t);
  __asm__("fldln2" : "=t"(t));
  print(t);
  __asm__("fldl2t; fldlg2; fmulp" : "=t"(t));
  print(t);
  __asm__("fsubp" : "=t"(t) : "0"(x), "u"(y) : "st(1)");
  print(t);
  __asm__("fdivrp" : "=t"(t) : "0"(x), "u"(y) : "st(1)");
  print(t);
  puts("");
  char below, same;
  __asm__("fcomi %4, %3" : "=@ccb"(below), "=@cce"(same), "=t"(t) : "2"(x), "u"(y) : "cc");
  printf("%d %d ", below, same);
  uint16_t status;
  __asm__("fucom %2; fnstsw %0" : "=a"(status) : "t"(y), "u"(x));
  printf("%x\n", status & 0x4500);
  int number = -7;
  __asm__("fildl %1; fabs" : "=t"(t) : "m"(number));
  print(t);
  puts("");
  return 0;
}
