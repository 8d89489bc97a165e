// run:
// paths: 3
// A table of 4,096 entries is read as one expression, and written at one index: no path a value.
#include <everett.h>

static unsigned short table[4096];
static unsigned char marks[2048];

int main(void) {
  unsigned short at;
  everett_make_symbolic(&at, sizeof at, "at");
  for (unsigned i = 0; i < 4096; i++)
    table[i] = (unsigned short)(i * 3);
  everett_assume(at < 2048);
  marks[at] = 1;
  if (table[at] == 777)
    return 1;
  if (marks[1000])
    return 2;
  return 0;
}
