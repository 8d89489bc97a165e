// run:
// finding: null-pointer 6
// not on -O3: null-pointer the call is the last thing that the function does, and leaves no frame of it behind
int main(void) {
  int (*volatile function)(void) = 0;
  return function(); // here
}
