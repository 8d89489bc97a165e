#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static jmp_buf back;
static int order(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }
__attribute__((noinline)) static int sorted(char *text) {
  qsort(text, strlen(text), 1, order);
  return text[0];
}
__attribute__((noinline)) static int depth(char *text, int at) {
  return text[at] ? 1 + depth(text, at + 1) : 0;
}
__attribute__((noinline)) static int far(char *text) {
  char *copy = strdup(text);
  int value = copy[strlen(copy) + 2] == 77;
  free(copy);
  return value;
}
__attribute__((noinline)) static int slow(char *text) {
  usleep(1000);
  return text[1];
}
__attribute__((noinline)) static int away(char *text) { text[0] = 'z'; longjmp(back, 1); }
static const struct {
  const char *name;
  int (*run)(char *);
}
commands[] = {{"sorted", sorted}, {"far", far}, {"away", away}, {"slow", slow}};
__attribute__((noinline)) int handle(char *line, int number) {
  for (int at = 0; at < 4; at++)
    if (!strncmp(line, commands[at].name, strlen(commands[at].name))) return commands[at].run(line);
  return depth(line, number & 1);
}
#ifdef DECIDES
__attribute__((used)) unsigned long everett_decide(const char *entry, const long *arguments) {
  return strcmp(entry, "handle") ? 0 : ((const char *)arguments[0])[0] == 'f' ? 0 : 1ul << 62;
}
#endif
int main(void) {
  char line[100];
  volatile int number = 0;
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (!setjmp(back)) printf("%d\n", handle(line, number++));
    else puts("back");
    fflush(stdout);
  }
  return 0;
}
