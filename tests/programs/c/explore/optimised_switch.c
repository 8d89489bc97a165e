// build: -O2
// run:
// args: --sym-arg 1
// paths: 2
// The compiler makes a table of the cases: in its range or not.
int main(int argc, char **argv) {
  switch (argv[argc - 1][0]) {
  case 'a':
    return 1;
  case 'b':
    return 7;
  case 'c':
    return 3;
  }
  return 0;
}
