// A system call without libc. Stands before the files of the runtime when they are compiled.
static long system_call(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

// Ends the process as abort does, whatever handler or mask there is.
__attribute__((noreturn, unused)) static void abort_process(void) {
  enum { SIGACTION = 13, SIGPROCMASK = 14, GETPID = 39, GETTID = 186, EXIT_GROUP = 231, TGKILL = 234, ABORT = 6 };
  long action[4] = {0, 0, 0, 0};
  unsigned long mask = 1ul << (ABORT - 1);
  system_call(SIGACTION, ABORT, (long)action, 0, 8, 0, 0);
  system_call(SIGPROCMASK, 1, (long)&mask, 0, 8, 0, 0);
  long process = system_call(GETPID, 0, 0, 0, 0, 0, 0);
  long thread = system_call(GETTID, 0, 0, 0, 0, 0, 0);
  system_call(TGKILL, process, thread, ABORT, 0, 0, 0);
  for (;;) system_call(EXIT_GROUP, 134, 0, 0, 0, 0, 0);
}

