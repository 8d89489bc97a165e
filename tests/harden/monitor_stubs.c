// What the monitor of hardened builds uses of the runtime, with a clock that the test moves.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef uintptr_t word;
enum { SYS_WRITE = 1, SYS_CLOSE = 3, SYS_MMAP = 9 };
struct text {
  size_t length;
  char bytes[1024];
};
// Four ticks a nanosecond.
static uint64_t test_ns;
#define __builtin_ia32_rdtsc() (test_ns * 4)
static long system_call(long number, long a, long b, long c, long d, long e, long f) {
  if (number != 228) return -1;
  ((long *)b)[0] = (long)(test_ns / 1000000000);
  ((long *)b)[1] = (long)(test_ns % 1000000000);
  return 0;
}
static void add(struct text *text, const char *more) {}
static void add_number(struct text *text, uint64_t number, unsigned base) {}
static void refuse(const char *why) { exit(2); }
