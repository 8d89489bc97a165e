// run:
// finding: out-of-bounds 6
int main(void) {
  volatile int index = -3;
  int local[4] = {1, 2, 3, 4};
  return local[index]; // here
}
