// run:
// finding: user-report 11
#include <everett.h>
#include <string.h>

int main(void) {
  unsigned char bytes[6];
  everett_make_symbolic(bytes, sizeof bytes, "bytes");
  unsigned char *colon = memchr(bytes, ':', sizeof bytes);
  if (colon == bytes + 3 && memcmp(colon + 1, "ok", 2) == 0 && memcmp(bytes, colon + 1, 2) > 0)
    everett_report("...:ok"); // here
  return 0;
}
