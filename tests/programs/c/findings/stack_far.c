// run:
// finding: out-of-bounds 7
// not on checked: out-of-bounds locals of a checked build lie elsewhere, and so far behind them is other memory
int main(void) {
  volatile int index = 1000;
  short local[4] = {1, 2, 3, 4};
  local[index] = 5; // here
  return local[0];
}
