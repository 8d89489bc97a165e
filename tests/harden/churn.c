#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *churn(void *argument) {
  char *blocks[64] = {0};
  unsigned number = 1 + (unsigned)(long)argument;
  for (int round = 0; round < 5000000; round++) {
    number = number * 1664525u + 1013904223u;
    char **block = &blocks[number >> 26];
    free(*block);
    *block = malloc(number >> 8 & 1023);
    if (round % 10000 == 0) { free(*block); *block = malloc(300000); memset(*block, 1, 300000); }
  }
  for (int at = 0; at < 64; at++) free(blocks[at]);
  return 0;
}
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, churn, (void *)1);
  churn(0);
  pthread_join(other, 0);
  /* Not getrusage: its maximum includes the process that started this one. */
  char line[128];
  long kib = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "VmHWM: %ld", &kib) == 1)
      break;
  printf("%ld\n", kib);
  return 0;
}
