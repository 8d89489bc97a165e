// run:
// finding: null-pointer 20
// survives: null-pointer the handler goes on natively
// paths: 2
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <everett.h>

// A fault is a finding although there is a handler, unless handlers are trusted.
static sigjmp_buf back;
static void escape(int signal) { siglongjmp(back, signal); }

int main(void) {
  unsigned char byte;
  everett_make_symbolic(&byte, sizeof byte, "byte");
  signal(SIGSEGV, escape);
  volatile int *nowhere = byte > 100 ? 0 : malloc(4);
  if (!sigsetjmp(back, 1)) *nowhere = 1;
  return 0;
}
