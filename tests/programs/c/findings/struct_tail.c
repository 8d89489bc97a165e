// run:
// finding: out-of-bounds 14
#include <stdlib.h>

struct packet {
  int length;
  char data[];
};

int main(void) {
  struct packet *packet = malloc(sizeof *packet + 3);
  packet->length = 4;
  for (int i = 0; i < packet->length; i++)
    packet->data[i] = (char)i; // here
  free(packet);
  return 0;
}
