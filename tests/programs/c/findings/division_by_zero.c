// run:
// finding: division-by-zero 5
int main(void) {
  volatile int zero = 0;
  return 10 / zero; // here
}
