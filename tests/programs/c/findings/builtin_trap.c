// run:
// finding: trap 4
int main(void) {
  __builtin_trap(); // here
}
