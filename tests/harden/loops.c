#include <stdio.h>
#include <string.h>
static unsigned char table[256];
static unsigned hash(const char *text) {
  unsigned h = 5381;
  while (*text) h = h * 33 + table[(unsigned char)*text++];
  return h;
}
// Not what the C library calls so.
__attribute__((noinline)) static long send(long kind, const char *text, int flags) {
  return kind * 100 + (text[0] == 'n') + flags;
}

int main(void) {
  for (int at = 0; at < 256; at++) table[at] = (unsigned char)(at * 7);
  int matrix[12][12], sum = 0;
  for (int y = 0; y < 12; y++) for (int x = 0; x < 12; x++) matrix[y][x] = x * y - 3;
  for (int y = 0; y < 12; y++) for (int x = 0; x < 12; x++) sum += matrix[y][x] * matrix[x][y];
  char line[80];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    printf("%s %u\n", line, hash(line));
  }
  printf("%d %ld\n", sum, send(3, line, 7));
  return 0;
}
