// run:
// args: --sym-env MODE 2
// paths: 2
#include <stdlib.h>

int main(void) {
  const char *mode = getenv("MODE");
  if (!mode)
    return 9;
  if (mode[0] == 'd')
    return mode[1] == 'b' ? 2 : 1;
  return 0;
}
