// exec:
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static void result(const char *what, long value) {
  printf("%s %ld %s\n", what, value, value < 0 ? strerror(errno) : "");
}

static long long ns(struct timespec t) { return t.tv_sec * 1000000000ll + t.tv_nsec; }

int main(void) {
  struct timespec a, b, resolution;
  static const int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
                               CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};
  for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
    int first = clock_gettime(clocks[i], &a), second = clock_gettime(clocks[i], &b);
    int got = clock_getres(clocks[i], &resolution);
    printf("clock %d: %d %d does not go back %d, resolution %d", clocks[i], first, second, ns(b) >= ns(a),
           got == 0 && resolution.tv_sec == 0 && resolution.tv_nsec > 0);
    // Coarse clocks show the time of the last tick.
    printf(", ticks %d\n", resolution.tv_nsec >= 1000000);
  }
  result("bad clock", clock_gettime(77, &a));
  result("bad resolution", clock_getres(77, &a));
  result("bad set", clock_settime(CLOCK_MONOTONIC, &a));
  clock_gettime(CLOCK_MONOTONIC, &a);
  usleep(30000);
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("slept %d\n", ns(b) - ns(a) >= 30000000);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
  usleep(300000);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
  printf("asleep is not at work %d\n", ns(b) - ns(a) < 200000000);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
  clock_t start = clock();
  while (clock() - start < 1000)
    ;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
  printf("at work %d\n", ns(b) - ns(a) >= 900000);
  clockid_t id;
  result("own clock", clock_getcpuclockid(0, &id));
  result("gettime", clock_gettime(id, &b));
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("rusage %d\n", usage.ru_utime.tv_sec + usage.ru_utime.tv_usec + usage.ru_stime.tv_sec + usage.ru_stime.tv_usec > 0);
  struct tms t;
  printf("times %d\n", times(&t) != (clock_t)-1);
  struct timeval day;
  gettimeofday(&day, 0);
  clock_gettime(CLOCK_REALTIME, &a);
  printf("same day %d\n", a.tv_sec - day.tv_sec <= 600);
  printf("time %d\n", time(0) - day.tv_sec <= 600);
  struct timespec bad = {0, 1000000000};
  result("bad sleep", nanosleep(&bad, 0));
  bad.tv_sec = -1;
  bad.tv_nsec = 0;
  result("negative sleep", nanosleep(&bad, 0));
  printf("bad clock_nanosleep %s\n", strerror(clock_nanosleep(77, 0, &a, 0)));
  printf("thread clock %s\n", strerror(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &a, 0)));
  clock_gettime(CLOCK_REALTIME, &a);
  printf("past %d\n", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &a, 0));
  clock_gettime(CLOCK_REALTIME, &a);
  a.tv_nsec += 20000000;
  if (a.tv_nsec >= 1000000000)
    a.tv_sec++, a.tv_nsec -= 1000000000;
  printf("future %d\n", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &a, 0));
  clock_gettime(CLOCK_REALTIME, &b);
  printf("reached %d\n", ns(b) >= ns(a));
  return 0;
}
