// run:
// finding: signal 6
#include <signal.h>

int main(void) {
  raise(SIGTERM); // here
  return 0;
}
