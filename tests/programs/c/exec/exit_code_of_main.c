// exec: a b c
// exec:
int main(int argc, char **argv) {
  return argv[argc] == 0 ? argc * 50 : -1;
}
