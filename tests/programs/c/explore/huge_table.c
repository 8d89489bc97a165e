// run:
// paths: 3
// A table of 65,536 entries is one term, also where an entry is the index of the next read.
#include <everett.h>

static unsigned short table[65536];

int main(void) {
  for (unsigned i = 0; i < 65536; i++)
    table[i] = (unsigned short)(i * 40503u);
  unsigned short index;
  everett_make_symbolic(&index, sizeof index, "index");
  if (table[index] == 40503u * 3 % 65536)
    return 1;
  if (table[table[index]] == 7)
    return 2;
  return 0;
}
