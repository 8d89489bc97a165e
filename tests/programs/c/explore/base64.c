// run:
// finding: user-report 18
#include <everett.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int main(void) {
  unsigned char in[3];
  everett_make_symbolic(in, sizeof in, "in");
  char out[5];
  out[0] = alphabet[in[0] >> 2];
  out[1] = alphabet[(in[0] & 3) << 4 | in[1] >> 4];
  out[2] = alphabet[(in[1] & 15) << 2 | in[2] >> 6];
  out[3] = alphabet[in[2] & 63];
  out[4] = 0;
  if (memcmp(out, "S0VZ", 4) == 0)
    everett_report("KEY"); // here
  return 0;
}
