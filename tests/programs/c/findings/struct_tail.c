// run:
// finding: out-of-bounds 15
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
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
