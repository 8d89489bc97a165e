// run:
// finding: out-of-bounds 7
static int table[6] = {1, 2, 3, 4, 5, 6};

int main(void) {
  volatile int count = 6;
  return table[count]; // here
}
