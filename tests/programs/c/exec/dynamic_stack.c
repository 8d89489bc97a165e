// exec:
#include <alloca.h>
#include <stdio.h>
#include <string.h>

static int sum(int n, int m, int table[n][m]) {
  int total = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      total += table[i][j];
  return total;
}

int main(int argc, char **argv) {
  (void)argv;
  int n = argc + 3, total = 0;
  for (int round = 0; round < 1000; round++) {
    char buffer[n * 1000];
    memset(buffer, round & 127, sizeof buffer);
    total += buffer[n * 1000 - 1];
  }
  int table[n][n + 1];
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= n; j++)
      table[i][j] = i * j;
  printf("%d %d %zu\n", total, sum(n, n + 1, table), sizeof table);
  char *parts[5];
  for (int i = 0; i < 5; i++) {
    parts[i] = alloca((size_t)i + 2);
    memset(parts[i], 'a' + i, (size_t)i + 1);
    parts[i][i + 1] = 0;
  }
  for (int i = 0; i < 5; i++)
    printf("%s ", parts[i]);
  puts("");
  return 0;
}
