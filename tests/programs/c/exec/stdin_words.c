// exec:
// stdin: the quick brown fox jumps over the lazy dog the end\n
#include <ctype.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char words[20][16];
  int counts[20] = {0}, known = 0;
  char word[16];
  while (scanf("%15s", word) == 1) {
    int i = 0;
    while (i < known && strcmp(words[i], word) != 0)
      i++;
    if (i == known)
      strcpy(words[known++], word);
    counts[i]++;
  }
  for (int i = 0; i < known; i++)
    printf("%d %s\n", counts[i], words[i]);
  return known;
}
