// run:
// finding: user-report 20
#include <everett.h>

static uint32_t table[256];

int main(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; bit++)
      value = value & 1 ? (value >> 1) ^ 0xedb88320u : value >> 1;
    table[i] = value;
  }
  unsigned char message[2];
  everett_make_symbolic(message, sizeof message, "message");
  uint32_t crc = ~0u;
  for (int i = 0; i < 2; i++)
    crc = table[(crc ^ message[i]) & 255] ^ (crc >> 8);
  if (~crc == 0x8f2e7cb6 || ~crc == 0xd8932aac) // the second is "hi"
    everett_report("found"); // here
  return 0;
}
