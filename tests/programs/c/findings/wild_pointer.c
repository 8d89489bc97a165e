// run:
// finding: wild-pointer 7
#include <stdint.h>

int main(void) {
  volatile uintptr_t number = 0x1234567890;
  return *(int *)number; // here
}
