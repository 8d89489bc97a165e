// run:
// finding: out-of-bounds 6
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
static void fill(int *to, int count) {
  for (int i = 0; i <= count; i++)
    to[i] = i; // here
}

int main(void) {
  int local[5];
  fill(local, 5);
  return local[2];
}
