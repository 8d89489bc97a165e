// Code that the compiler makes for initialisers of globals is not optimised, and is checked.
// run:
// finding: undefined-shift 6
static int distance() { return 40; }

int shifted = 1 << distance();

struct Counted {
  Counted() : number(4) {}
  ~Counted() {}
  int number;
};
static Counted counted;

int main() { return counted.number - 4; }
