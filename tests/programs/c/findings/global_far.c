// run:
// finding: out-of-bounds 8
// survives: out-of-bounds the gaps around globals of a checked build are small
int numbers[3] = {1, 2, 3};

int main(void) {
  volatile int index = 1000;
  numbers[index] = 1; // here
  return 0;
}
