// run:
// finding: use-after-return 12
static int *keep;

static void leave(void) {
  int local = 5;
  keep = &local;
}

int main(void) {
  leave();
  return *keep; // here
}
