// run:
// finding: stack-overflow 9
// not on -O3: stack-overflow the optimiser leaves the allocation out
static int use(volatile char *bytes) {
  return bytes[0];
}

static int large(void) {
  volatile char room[9 << 20]; // here
  room[0] = 1;
  return use(room);
}

int main(void) {
  return large();
}
