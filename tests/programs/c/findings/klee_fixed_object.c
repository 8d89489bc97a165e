// run:
// paths: 2
// finding: wild-pointer 18
// A device's registers at an address of its own, with bounds.
#include <klee/klee.h>
#include <stdint.h>
#include <stdio.h>

#define REGISTERS ((volatile uint32_t *)0x40000000)

int main(void) {
  klee_define_fixed_object((void *)REGISTERS, 4096);
  klee_define_fixed_object((void *)(REGISTERS + 1024), 4096);
  REGISTERS[3] = 7;
  REGISTERS[1024] = REGISTERS[3] + 1;
  printf("%u %u\n", REGISTERS[3], REGISTERS[1024]);
  if (klee_range(0, 2, "outside"))
    REGISTERS[-1] = 1;
  return 0;
}
