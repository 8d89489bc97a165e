// run:
// paths: 1
// What programs that keep the clock right do with it. It is not run on the machine, whose clock it would set; what is
// asserted is what Linux does.
#include <assert.h>
#include <stdio.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static long long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/// By how many microseconds the wall clock gains in so many seconds.
static long long gained(int seconds) {
  long long wall = now(CLOCK_REALTIME), passed = now(CLOCK_MONOTONIC);
  sleep(seconds);
  long long gain = now(CLOCK_REALTIME) - wall - (now(CLOCK_MONOTONIC) - passed);
  return (gain + (gain < 0 ? -500 : 500)) / 1000;
}

static void status(void) {
  struct timex all = {0};
  assert(adjtimex(&all) == TIME_ERROR && all.status & STA_UNSYNC);
  assert(all.freq == 0 && all.tick == 10000 && all.tolerance == 500 << 16 && all.maxerror == 16000000);
  all = (struct timex){.modes = ADJ_STATUS | ADJ_MAXERROR | ADJ_ESTERROR, .maxerror = 100, .esterror = 7};
  assert(adjtimex(&all) == TIME_OK && all.esterror == 7);
  sleep(3);
  all = (struct timex){0};
  assert(adjtimex(&all) == TIME_OK && all.maxerror == 1600 && all.time.tv_usec < 1000000);
  all = (struct timex){.modes = ADJ_NANO};
  assert(adjtimex(&all) == TIME_OK && all.status & STA_NANO);
  all = (struct timex){.modes = ADJ_TAI, .constant = 37};
  assert(adjtimex(&all) == TIME_OK && all.tai == 37);
}

static void rates(void) {
  struct timex all = {.modes = ADJ_FREQUENCY, .freq = 100 << 16};
  assert(adjtimex(&all) == TIME_OK && all.freq == 100 << 16);
  assert(gained(10) == 1000);
  all = (struct timex){.modes = ADJ_FREQUENCY, .freq = -900L * 65536};
  assert(adjtimex(&all) == TIME_OK && all.freq == -500L * 65536);
  assert(gained(10) == -5000);
  all = (struct timex){.modes = ADJ_FREQUENCY | ADJ_TICK, .tick = 10100};
  assert(adjtimex(&all) == TIME_OK && all.tick == 10100);
  assert(gained(10) == 100000);
  // A deadline on this clock comes when it shows that time.
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_sec += 101;
  long long passed = now(CLOCK_MONOTONIC);
  assert(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == 0);
  passed = now(CLOCK_MONOTONIC) - passed;
  assert(passed > 99990000000LL && passed < 100010000000LL);
  all = (struct timex){.modes = ADJ_TICK, .tick = 10000};
  assert(adjtimex(&all) == TIME_OK && gained(10) == 0);
}

static void steps(void) {
  long long before = now(CLOCK_REALTIME);
  struct timex all = {.modes = ADJ_SETOFFSET | ADJ_NANO, .time = {.tv_sec = -3, .tv_usec = 500000000}};
  assert(clock_adjtime(CLOCK_REALTIME, &all) == TIME_OK);
  long long moved = now(CLOCK_REALTIME) - before;
  assert(moved > -2500000000LL && moved < -2499000000LL);
  all = (struct timex){.modes = ADJ_SETOFFSET | ADJ_MICRO, .time = {.tv_sec = 0, .tv_usec = 1000000}};
  assert(clock_adjtime(CLOCK_REALTIME, &all) == -1);
  all = (struct timex){.modes = ADJ_TICK, .tick = 20000};
  assert(adjtimex(&all) == -1);
}

int main(void) {
  status();
  rates();
  steps();
  return 0;
}
