/* A file service over datagrams, after FSP's protocol: a header and a path that ends with a NUL. */
#include <stdint.h>
#include <string.h>
#ifdef ANNOTATED
#include <everett.h>
#endif

enum { PORT = 2100, HEADER = 12, MOST_PATH = 4 };

/* Commands with one path. */
enum { GET_DIR = 0x41, GET_FILE, DEL_FILE, DEL_DIR, GET_PRO, MAKE_DIR, GRAB_FILE, STAT, COMMANDS = 8, ERROR = 0x40 };

struct message {
  uint8_t cmd;
  uint8_t sum;
  uint8_t key[2];
  uint8_t seq[2];
  uint8_t len[2]; /* of the path, without its NUL */
  uint8_t pos[4];
  char path[MOST_PATH + 1];
};

/* The checksum of FSP: the sum of all bytes but its own, folded. With -DANNOTATED it is any number. */
static inline uint8_t sum_of(const struct message *message, unsigned size) {
#ifdef ANNOTATED
  everett_function_start();
  everett_return_symbolic(everett_symbolic_u8("sum"));
  everett_function_end();
#endif
  const uint8_t *bytes = (const uint8_t *)message;
  unsigned sum = size;
  for (unsigned i = 0; i < size; i++) sum += i == 1 ? 0 : bytes[i];
  return (uint8_t)(sum + (sum >> 8));
}
