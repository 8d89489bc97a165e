// exec:
#include <math.h>
#include <stdio.h>

int main(void) {
  volatile long double a = 1.1L, b = -2.7L, big = 1e4000L;
  printf("%La %La %La %La\n", a + b, a - b, a * b, a / b);
  printf("%d %d %d %d\n", a < b, a > b, a == a, a != b);
  printf("%d %ld %lu %lld\n", (int)b, (long)(a * 1e10L), (unsigned long)(a * 1e19L), (long long)(b * 1e18L));
  printf("%La %La %La\n", (long double)3, (long double)0.1, (long double)0.1f);
  printf("%a %a\n", (double)(a / 3), (double)(float)(a / 3));
  printf("%La %La %La\n", sqrtl(a), fabsl(b), floorl(b));
  printf("%La %La %La\n", ceill(b), truncl(b), roundl(b));
  printf("%La %La %La\n", sinl(a), cosl(a), expl(a));
  printf("%La %La %La\n", logl(a), powl(a, 2.5L), fmodl(b, 1.1L));
  printf("%La %La\n", big * 10, big / 3);
  printf("%La %d\n", big * big, isinf(big * big));
  long double sum = 0;
  for (int i = 1; i <= 100; i++)
    sum += 1.0L / i;
  printf("%.21Lg\n", sum);
  printf("%La %La\n", -a, nextafterl(a, 2));
  int exponent;
  printf("%La %d %La\n", frexpl(b, &exponent), exponent, ldexpl(a, 100));
  printf("%zu\n", sizeof a);
  unsigned long long large = 0xffffffffffffffffULL;
  printf("%La %d\n", (long double)large, (unsigned long long)(long double)large == large);
  return 0;
}
