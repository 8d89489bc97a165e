// run:
// finding: invalid-call 7
static int data[4] = {1, 2, 3, 4};

int main(void) {
  int (*volatile function)(void) = (int (*)(void))(void *)data;
  return function(); // here
}
