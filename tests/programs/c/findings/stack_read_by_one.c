// run:
// finding: out-of-bounds 6
int main(void) {
  volatile int index = 8;
  char local[8] = "seven..";
  return local[index]; // here
}
