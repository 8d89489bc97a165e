// run:
// finding: out-of-bounds 5
static void fill(int *to, int count) {
  for (int i = 0; i <= count; i++)
    to[i] = i; // here
}

int main(void) {
  int local[5];
  fill(local, 5);
  return local[2];
}
