// run:
// finding: out-of-bounds 7
long numbers[3] = {1, 2, 3};

int main(void) {
  volatile int index = -1;
  return (int)numbers[index]; // here
}
