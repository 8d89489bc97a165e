// run:
// finding: invalid-call 8
// not on -O3: invalid-call the optimiser leaves out a call that cannot be one
static int data[4] = {1, 2, 3, 4};

int main(void) {
  int (*volatile function)(void) = (int (*)(void))(void *)data;
  return function(); // here
}
