// The first function of every program, in bitcode: p points to argc, argv, envp and auxv.
int main();
__attribute__((weak)) void _init();
__attribute__((weak)) void _fini();
int __libc_start_main(int (*)(), int, char **, void (*)(), void (*)(), void (*)());

void _start_c(long *p) {
  int argc = (int)p[0];
  char **argv = (char **)(p + 1);
  __libc_start_main(main, argc, argv, _init, _fini, 0);
}
