// run:
// finding: out-of-bounds 7
static _Thread_local int slots[4];

int main(void) {
  volatile int index = 4;
  slots[index] = 1; // here
  return 0;
}
