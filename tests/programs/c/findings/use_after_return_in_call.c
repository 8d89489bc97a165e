// The function that uses the dead variable has one of its own.
// run:
// finding: use-after-return 14
// not on -O3: use-after-return the optimiser leaves out an access of which nothing is used, or knows what it gives
static int *made(void) {
  int local = 3;
  int *volatile escapes = &local;
  return escapes;
}

static int use(int *at) {
  int own = 5;
  int *volatile held = &own;
  *at = 100;
  return *held;
}

int main(void) { return use(made()) == 100; }
