// run:
// finding: out-of-bounds 9
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
static char name[6];

int main(void) {
  const char *from = "abcdef";
  int i = 0;
  while ((name[i] = from[i]) != 0) // here
    i++;
  return 0;
}
