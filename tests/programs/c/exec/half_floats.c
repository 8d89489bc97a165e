// exec:
#include <stdio.h>

int main(void) {
  volatile _Float16 h = 0.1f16, g = 3;
  printf("%a %a %a\n", (double)h, (double)(h * g), (double)(h / g));
  printf("%d %d %a\n", h < g, (int)g, (double)(_Float16)1e10f);
  volatile __bf16 b = (__bf16)1.01f;
  printf("%a\n", (double)(float)b);
  volatile __float128 q = 1;
  q /= 3;
  printf("%a %d\n", (double)q, q * 3 == 1);
  printf("%a %d\n", (double)((long double)q - (double)q), (int)(q * 100));
  return 0;
}
