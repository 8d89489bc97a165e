// run:
// finding: use-after-return 13
// not on -O3: use-after-return the optimiser leaves out an access of which nothing is used, or knows what it gives
static int *keep;

static void leave(void) {
  int local = 5;
  keep = &local;
}

int main(void) {
  leave();
  return *keep; // here
}
