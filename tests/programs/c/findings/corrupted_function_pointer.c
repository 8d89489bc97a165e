// run:
// finding: invalid-call 16
#include <everett.h>

struct handler {
  char kind;
  void (*call)(void);
};

static void fine(void) {}

int main(void) {
  struct handler handler = {1, fine};
  everett_make_symbolic(&handler, sizeof handler, "handler");
  if (handler.kind == 2 && (uint64_t)handler.call >= 0x7fff00000000)
    handler.call(); // here
  return 0;
}
