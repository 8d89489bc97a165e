// Structs are copied to and from symbolic places of an array, and changed at others.
// run:
// paths: 5
#include <everett.h>

static struct record {
  int numbers[3];
  char name[5];
  long size;
} records[40];

int main(void) {
  unsigned char i, j;
  everett_make_symbolic(&i, 1, "i");
  everett_make_symbolic(&j, 1, "j");
  if (i >= 40 || j >= 40)
    return 0;
  struct record record = {{1, 2, 3}, "abcd", 9};
  records[i] = record;
  records[j].size = 7;
  records[3].name[1] = 'z';
  struct record one = records[i];
  struct record other = records[j];
  if (one.size == 7)
    return other.name[1];
  if (one.name[1] == 'z')
    return 5;
  return other.numbers[2];
}
