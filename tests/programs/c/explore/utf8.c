// run:
// finding: assertion 29
#include <assert.h>
#include <everett.h>

// Takes overlong forms: the bug.
static int decode(const unsigned char *s, int length, unsigned *out) {
  if (length >= 1 && s[0] < 0x80) {
    *out = s[0];
    return 1;
  }
  if (length >= 2 && (s[0] & 0xe0) == 0xc0 && (s[1] & 0xc0) == 0x80) {
    *out = (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    return 2;
  }
  if (length >= 3 && (s[0] & 0xf0) == 0xe0 && (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80) {
    *out = (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    return 3;
  }
  return 0;
}

int main(void) {
  unsigned char bytes[3];
  everett_make_symbolic(bytes, sizeof bytes, "bytes");
  unsigned point = 0;
  int used = decode(bytes, 3, &point);
  if (used > 1)
    assert(point != '/'); // here
  return used;
}
