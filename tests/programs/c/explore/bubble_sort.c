// run:
// paths: 24
#include <assert.h>
#include <everett.h>

int main(void) {
  unsigned char values[4];
  everett_make_symbolic(values, sizeof values, "values");
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < i; j++)
      everett_assume(values[i] != values[j]);
  for (int end = 3; end > 0; end--)
    for (int i = 0; i < end; i++)
      if (values[i] > values[i + 1]) {
        unsigned char swapped = values[i];
        values[i] = values[i + 1];
        values[i + 1] = swapped;
      }
  assert(values[0] < values[1]);
  assert(values[1] < values[2]);
  assert(values[2] < values[3]);
  return 0;
}
