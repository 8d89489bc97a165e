// build: -O3
// exec:
#include <stdio.h>
#include <string.h>

enum { N = 64 };
static unsigned char now[N][N], next[N][N];

int main(void) {
  unsigned seed = 1;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      seed = seed * 1664525 + 1013904223;
      now[i][j] = seed >> 30 == 0;
    }
  for (int round = 0; round < 30; round++) {
    for (int i = 1; i < N - 1; i++)
      for (int j = 1; j < N - 1; j++) {
        int around = now[i - 1][j - 1] + now[i - 1][j] + now[i - 1][j + 1] + now[i][j - 1] + now[i][j + 1] +
                     now[i + 1][j - 1] + now[i + 1][j] + now[i + 1][j + 1];
        next[i][j] = around == 3 || (around == 2 && now[i][j]);
      }
    memcpy(now, next, sizeof now);
  }
  for (int i = 0; i < N; i += 4) {
    for (int j = 0; j < N; j++)
      putchar(now[i][j] ? '#' : '.');
    putchar('\n');
  }
  return 0;
}
