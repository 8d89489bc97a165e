// run:
#include <everett.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  return *(const signed char *)a - *(const signed char *)b;
}

int main(void) {
  signed char values[3];
  everett_make_symbolic(values, sizeof values, "values");
  qsort(values, 3, 1, compare);
  if (values[0] > values[1] || values[1] > values[2])
    everett_report("not sorted");
  return 0;
}
