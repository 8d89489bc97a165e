// run:
// finding: out-of-bounds 8
// survives: out-of-bounds the first global of a checked build has no gap before it
long numbers[3] = {1, 2, 3};

int main(void) {
  volatile int index = -1;
  return (int)numbers[index]; // here
}
