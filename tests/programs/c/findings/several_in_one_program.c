// run:
// paths: 4
// finding: out-of-bounds 15
// finding: null-pointer 17
// finding: division-by-zero 19
// not on -O3: division-by-zero the optimiser leaves out what nothing uses, or computes it without that instruction
#include <everett.h>

int main(void) {
  volatile int zero = 0;
  int *volatile nothing = 0;
  int room[2] = {0, 0};
  switch (everett_choose(4, "which")) {
  case 0:
    return room[zero + 2]; // here1
  case 1:
    return *nothing; // here2
  case 2:
    return 1 / zero; // here3
  default:
    return 0;
  }
}
