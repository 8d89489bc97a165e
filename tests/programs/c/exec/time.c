// exec:
#define _XOPEN_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(void) {
  time_t times[] = {0, 1, 86399, 951782400, 1234567890, 4102444800, -1, -86401};
  for (unsigned i = 0; i < sizeof times / sizeof *times; i++) {
    struct tm *t = gmtime(&times[i]);
    char text[100];
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %a %A %b %B %j %U %w %y %e %I %p %%", t);
    puts(text);
    printf("%s", asctime(t));
    printf("%d\n", (int)(mktime(t) == times[i]));
  }
  struct tm parsed;
  memset(&parsed, 0, sizeof parsed);
  char *rest = strptime("2024-02-29 12:30:45 tail", "%Y-%m-%d %H:%M:%S", &parsed);
  printf("%d %d %d %s\n", parsed.tm_year, parsed.tm_mon, parsed.tm_sec, rest);
  parsed.tm_mday += 400;
  printf("%lld %d %d\n", (long long)mktime(&parsed), parsed.tm_wday, parsed.tm_yday);
  printf("%g\n", difftime(100, 40));
  struct timespec now;
  printf("%d %d\n", clock_gettime(CLOCK_MONOTONIC, &now), time(NULL) > 0);
  return 0;
}
