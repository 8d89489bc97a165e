// run:
// finding: out-of-bounds 8
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
static _Thread_local int slots[4];

int main(void) {
  volatile int index = 4;
  slots[index] = 1; // here
  return 0;
}
