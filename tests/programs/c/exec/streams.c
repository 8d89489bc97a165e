// exec:
// stdin: alpha:beta:gamma
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void) {
  char *text;
  int length = asprintf(&text, "%s/%05.1f/%#x", "formatted", 3.14159, 255);
  printf("%d %s\n", length, text);
  free(text);
  char *part = NULL;
  size_t room = 0;
  while (getdelim(&part, &room, ':', stdin) > 0)
    printf("<%s>", part);
  puts("");
  free(part);
  static char buffer[1024];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  fputs("buffered ", stdout);
  fflush(stdout);
  dprintf(1, "direct %d\n", 5);
  setvbuf(stdout, NULL, _IONBF, 0);
  fputs("unbuffered\n", stdout);
  fprintf(stderr, "to standard error\n");
  perror("perror");
  FILE *again = fdopen(dup(1), "w");
  fprintf(again, "duplicate\n");
  fclose(again);
  printf("%d %d %d\n", fileno(stdin), fileno(stdout), putchar('x'));
  FILE *null = fopen("/dev/null", "w");
  printf("%d\n", fprintf(null, "nothing %d", 1));
  fclose(null);
  return 0;
}
