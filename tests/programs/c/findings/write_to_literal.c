// run:
// finding: read-only-write 5
int main(void) {
  char *volatile text = "constant";
  text[0] = 'C'; // here
  return 0;
}
