// exec:
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  srand(42);
  for (int i = 0; i < 5; i++)
    printf("%d ", rand());
  srandom(7);
  for (int i = 0; i < 5; i++)
    printf("%ld ", random());
  srand48(3);
  printf("%.10f %ld\n", drand48(), lrand48());
  unsigned seed = 9;
  printf("%d\n", rand_r(&seed));
  div_t d = div(-17, 5);
  ldiv_t l = ldiv(100000000000, 7);
  printf("%d %d %ld %ld %d\n", d.quot, d.rem, l.quot, l.rem, abs(-4));
  return 0;
}
