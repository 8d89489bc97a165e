// run:
// args: --sym-stdin 4
// finding: user-report 13
#include <everett.h>
#include <unistd.h>

int main(void) {
  char buffer[16];
  ssize_t length = read(0, buffer, sizeof buffer);
  if (length != 4)
    return 1;
  if (buffer[0] == 'a' && buffer[1] == 'b' && (buffer[2] ^ buffer[3]) == 0x55)
    everett_report("ab"); // here
  return 0;
}
