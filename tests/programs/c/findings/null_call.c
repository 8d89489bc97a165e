// run:
// finding: null-pointer 5
int main(void) {
  int (*volatile function)(void) = 0;
  return function(); // here
}
