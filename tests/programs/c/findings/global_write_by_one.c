// run:
// finding: out-of-bounds 8
static char name[6];

int main(void) {
  const char *from = "abcdef";
  int i = 0;
  while ((name[i] = from[i]) != 0) // here
    i++;
  return 0;
}
