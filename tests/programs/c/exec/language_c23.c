// build: -std=c23
// exec:
#include <stdckdint.h>
#include <stdio.h>

constexpr int limit = 4;
enum small : unsigned char { FIRST = 200, SECOND };
struct point { int x, y; };

#define KIND(v) _Generic((v), int: "int", double: "double", char *: "text", struct point: "point", default: "other")

[[maybe_unused]] static int unused;

static void cleanup(int *value) { printf("cleanup %d\n", *value); }

int main() {
  auto x = 5;
  typeof(x) y = 0b1010'1010;
  bool yes = true;
  int *nothing = nullptr;
  printf("%d %d %d %d\n", x, y, yes, nothing == nullptr);
  printf("%s %s %s %s %s\n", KIND(1), KIND(1.0), KIND((char *)"s"), KIND((struct point){}), KIND(1u));
  int array[limit] = {};
  printf("%d %zu %d\n", array[3], sizeof(enum small), SECOND);
  {
    __attribute__((cleanup(cleanup))) int scoped = 7;
    scoped++;
  }
  unsigned _BitInt(5) five = 31;
  five++;
  printf("%d %u\n", (int)five, (unsigned)sizeof(_BitInt(200)));
  _BitInt(200) wide = 1;
  for (int i = 0; i < 150; i++)
    wide *= 2;
  printf("%d\n", (int)(wide >> 145));
  int sum;
  printf("%d %d\n", ckd_add(&sum, 2147483647, 1), sum);
  _Alignas(64) char aligned[3];
  printf("%d\n", (int)((unsigned long)aligned % 64));
  struct point *p = &(struct point){.y = 3, .x = 4};
  printf("%d %d\n", p->x, p->y);
  return 0;
}
