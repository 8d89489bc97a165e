// run:
// finding: out-of-bounds 7
int numbers[3] = {1, 2, 3};

int main(void) {
  volatile int index = 1000;
  numbers[index] = 1; // here
  return 0;
}
