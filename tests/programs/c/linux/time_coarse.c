// exec:
// Coarse clocks show the last tick: they stand still between two ticks, and follow the other clocks.
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long now(clockid_t clock) {
  struct timespec time;
  syscall(SYS_clock_gettime, clock, &time);
  return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void follow(const char *name, clockid_t fine, clockid_t coarse) {
  struct timespec tick, rest = {0, 20000000};
  clock_getres(coarse, &tick);
  int still = 0, behind = 0, ahead = 0;
  long long last = now(coarse);
  for (int at = 0; at < 50; at++) {
    long long shown = now(coarse), after = now(fine);
    still += shown == last;
    behind += shown < last;
    ahead += shown > after;
    last = shown;
  }
  long long before = now(coarse);
  nanosleep(&rest, NULL);
  printf("%s: stands still %d, backwards %d, ahead %d, coarser than the other %d, a sleep moves it %d\n", name,
         still > 0, behind, ahead, tick.tv_nsec >= 1000000, now(coarse) - before >= 15000000 - tick.tv_nsec);
}

int main(void) {
  follow("time of day", CLOCK_REALTIME, CLOCK_REALTIME_COARSE);
  follow("monotonic", CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE);
  return 0;
}
