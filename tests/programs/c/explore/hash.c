// run:
// finding: user-report 16
#include <everett.h>

static uint32_t hash(const unsigned char *bytes, int count) {
  uint32_t value = 2166136261u;
  for (int i = 0; i < count; i++)
    value = (value ^ bytes[i]) * 16777619u;
  return value;
}

int main(void) {
  unsigned char key[3];
  everett_make_symbolic(key, sizeof key, "key");
  if (hash(key, 3) == 0x1a47e90b) // "abc"
    everett_report("abc"); // here
  return 0;
}
