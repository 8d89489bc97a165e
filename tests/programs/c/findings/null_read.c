// run:
// finding: null-pointer 9
struct pair {
  int first, second;
};

int main(void) {
  struct pair *volatile pointer = 0;
  return pointer->second; // here
}
