// A pointer that is null on one of two paths, and a handler that escapes from the fault.
#include <everett.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static sigjmp_buf back;
static void escape(int signal) { siglongjmp(back, signal); }

static volatile int *block_or_null(void) {
  unsigned char byte;
  everett_make_symbolic(&byte, sizeof byte, "byte");
  signal(SIGSEGV, escape);
  return byte > 100 ? 0 : malloc(4);
}
