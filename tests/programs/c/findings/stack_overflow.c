// run:
// finding: stack-overflow 7
static int deep(volatile int *count) {
  volatile char room[256];
  room[0] = 1;
  ++*count;
  return deep(count) + room[0]; // here
}

int main(void) {
  volatile int count = 0;
  return deep(&count);
}
