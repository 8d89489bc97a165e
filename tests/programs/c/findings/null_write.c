// run:
// finding: null-pointer 5
int main(void) {
  int *volatile pointer = 0;
  *pointer = 1; // here
  return 0;
}
