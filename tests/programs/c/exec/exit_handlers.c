// exec:
#include <stdio.h>
#include <stdlib.h>

static void first(void) { puts("first registered"); }
static void second(void) { puts("second registered"); }
__attribute__((constructor)) static void before(void) { puts("constructor"); }
__attribute__((constructor(101))) static void early(void) { puts("early constructor"); }
__attribute__((destructor)) static void after(void) { puts("destructor"); }

int main(void) {
  atexit(first);
  atexit(second);
  printf("no newline at the end");
  exit(300 + 7);
}
