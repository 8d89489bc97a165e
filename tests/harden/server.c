#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct event { long count; };
static struct event events[16];
static int (*handlers[8])(int);
struct timeout { long seconds; void (*hook)(void); };
struct socket { int family; char options[24]; };
static char *volatile keep;
__attribute__((noinline)) static int hot(const unsigned char *bytes, int size) {
  unsigned sum = 0;
  for (int at = 0; at < size; at++) sum = sum * 31 + bytes[at];
  return (int)(sum & 127);
}
__attribute__((noinline)) static void perf_event(long config) { /* event */
  int event = (int)config;
  events[event].count++;
}
__attribute__((noinline)) static int sock_diag(int family) { /* diag */
  return handlers[family & 255] ? 1 : 0;
}
__attribute__((noinline)) static void compat_timeout(struct timeout *place) { /* compat */
  memset(&place->seconds, 0, 16);
}
__attribute__((noinline)) static int dump(const char *from, int size) {
  char *buffer = malloc(16); /* dump */
  memcpy(buffer, from, (size_t)size);
  keep = buffer;
  int last = buffer[size - 1];
  free(buffer);
  return last;
}
__attribute__((noinline)) static int closed(int family) {
  struct socket *socket = malloc(sizeof *socket); /* closed */
  keep = (char *)socket;
  socket->family = family;
  free(socket);
  return ((struct socket *)keep)->family;
}
__attribute__((noinline)) static void twice(void) { /* twice */
  char *block = malloc(40);
  keep = block;
  free(block);
  free(keep);
}
__attribute__((noinline)) static int vcpu(int id) { /* vcpu */
  int *table = calloc(16, sizeof *table);
  keep = (char *)table;
  table[id] = 1;
  int value = table[0];
  free(table);
  return value;
}
__attribute__((noinline)) static int service(const char *name) { /* service */
  char local[16];
  strcpy(local, name);
  keep = local;
  return local[0];
}
__attribute__((noinline)) static void page(long offset) { /* page */
  char *block = malloc(100);
  keep = block;
  *(volatile long *)(block + offset) = 1;
  free(block);
}
int main(int argc, char **argv) {
  char line[512], word[16]; long number;
  int rounds = argc > 1 ? atoi(argv[1]) : 1, sum = 0;
  unsigned char *data = malloc(64);
  memset(data, 3, 64);
  handlers[rounds & 7] = abs;
  while (fgets(line, sizeof line, stdin)) {
    number = 0;
    if (sscanf(line, "%15s %ld", word, &number) < 1) continue;
    if (!strcmp(word, "hot")) for (int at = 0; at < rounds; at++) { data[at & 63]++; sum += hot(data, 64); }
    else if (!strcmp(word, "event")) perf_event(number);
    else if (!strcmp(word, "diag")) sum += sock_diag((int)number);
    else if (!strcmp(word, "compat")) {
      struct timeout *one = malloc(sizeof *one);
      keep = (char *)one;
      compat_timeout(one);
      free(one);
    }
    else if (!strcmp(word, "dump")) sum += dump(line, (int)number);
    else if (!strcmp(word, "closed")) sum += closed((int)number);
    else if (!strcmp(word, "twice")) twice();
    else if (!strcmp(word, "vcpu")) sum += vcpu((int)number);
    else if (!strcmp(word, "service")) sum += service(line + 8);
    else if (!strcmp(word, "page")) page(number);
  }
  printf("%d\n", sum & 1);
  return 0;
}
