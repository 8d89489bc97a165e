/* The messages of figures 4.2 and 4.3 of the thesis on Achilles: requests to read and write a server's data. */
#include <stdint.h>
#include <string.h>

enum { READ = 1, WRITE = 2, REPLY = 3, ACK = 4, DATASIZE = 100, PORT = 9000 };

struct message {
  uint8_t sender;
  uint8_t request;
  int16_t address;
  int16_t value;
  uint16_t crc;
};

/* CRC-16 of all fields before it, without branches. */
static inline uint16_t crc_of(const struct message *message) {
  const uint8_t *bytes = (const uint8_t *)message;
  uint16_t crc = 0xffff;
  for (unsigned i = 0; i < 6; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = (uint16_t)(crc >> 1 ^ (0xa001 & -(crc & 1)));
  }
  return crc;
}
