// run:
// paths: 5
// Writes at symbolic indices, then reads at others: the last write that hits counts, also after a write at a fixed index.
#include <everett.h>

static unsigned table[1024];

int main(void) {
  unsigned short key[3];
  everett_make_symbolic(key, sizeof key, "key");
  for (int i = 0; i < 3; i++)
    key[i] &= 1023;
  for (int i = 0; i < 3; i++)
    table[key[i]] = i + 1;
  everett_assert(table[key[2]] == 3);
  unsigned sum = table[key[0]] + table[key[1]];
  if (sum == 3)
    return 1;
  if (sum == 4)
    return 2;
  if (sum == 5)
    return 3;
  table[7] = 9;
  if (table[key[1]] == 9)
    return 4;
  return 0;
}
