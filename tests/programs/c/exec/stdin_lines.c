// exec:
// stdin: first line\nsecond\n\nlast without end
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char buffer[6];
  if (fgets(buffer, sizeof buffer, stdin))
    printf("<%s>\n", buffer);
  int c = getchar();
  ungetc('U', stdin);
  printf("%c %c\n", c, getchar());
  char *line = NULL;
  size_t room = 0;
  ssize_t length;
  while ((length = getline(&line, &room, stdin)) != -1)
    printf("%zd <%s>\n", length, line);
  free(line);
  printf("%d %d\n", !!feof(stdin), !!ferror(stdin));
  printf("%d\n", getchar());
  return 0;
}
