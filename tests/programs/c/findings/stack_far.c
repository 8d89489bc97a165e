// run:
// finding: out-of-bounds 6
int main(void) {
  volatile int index = 1000;
  short local[4] = {1, 2, 3, 4};
  local[index] = 5; // here
  return local[0];
}
