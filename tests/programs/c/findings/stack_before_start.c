// run:
// finding: out-of-bounds 7
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
int main(void) {
  volatile int index = -3;
  int local[4] = {1, 2, 3, 4};
  return local[index]; // here
}
