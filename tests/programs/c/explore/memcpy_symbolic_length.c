// run:
// finding: out-of-bounds 16
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>
#include <string.h>

int main(void) {
  struct {
    unsigned char length;
    char data[7];
  } packet;
  char room[6] = {0};
  everett_make_symbolic(&packet, sizeof packet, "packet");
  if (packet.length > sizeof packet.data)
    return 1;
  memcpy(room, packet.data, packet.length); // here
  return 0;
}
