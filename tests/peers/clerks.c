// Clients of store.c. `clerks steps`: five steps, each one of four commands, checked against a plain model.
// `clerks race`: two threads take 60 each of 100, each over a connection of its own. What comes out is the exit code.
#include <arpa/inet.h>
#include <everett.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STEPS = 5, FAILED = 250 };

static int join_store(void) {
  struct sockaddr_in store = {.sin_family = AF_INET, .sin_port = htons(7)};
  inet_pton(AF_INET, "10.0.0.9", &store.sin_addr);
  int own = socket(AF_INET, SOCK_STREAM, 0);
  if (own < 0 || connect(own, (struct sockaddr *)&store, sizeof store)) _exit(FAILED);
  return own;
}

static long command(int store, const char *text) {
  char answer[64];
  size_t size = 0;
  if (send(store, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text)) _exit(FAILED + 1);
  do {
    ssize_t got = read(store, answer + size, sizeof answer - 1 - size);
    if (got <= 0) _exit(FAILED + 2);
    size += (size_t)got;
    answer[size] = 0;
  } while (!strchr(answer, '\n'));
  return atol(answer);
}

static int steps(void) {
  static const char *const commands[] = {"inc\n", "dec\n", "push\n", "pop\n"};
  int store = join_store();
  long number = 0, length = 0;
  command(store, "clear\n");
  for (int step = 0; step < STEPS; step++) {
    int which = everett_choose(4, "command");
    long said = command(store, commands[which]);
    switch (which) {
    case 0: everett_assert(said == ++number); break;
    case 1: everett_assert(said == --number); break;
    case 2: everett_assert(said == ++length); break;
    case 3: everett_assert(said == (length > 0 ? --length : 0));
    }
  }
  everett_assert(command(store, "get\n") == number);
  return (int)((number & 15) * 8 + length);
}

static void *withdraw(void *own) {
  int store = *(int *)own;
  long money = command(store, "get\n");
  if (money < 60) return (void *)0l;
  char text[32];
  sprintf(text, "set %ld\n", money - 60);
  command(store, text);
  return (void *)60l;
}

static int race(void) {
  int stores[2] = {join_store(), join_store()};
  command(stores[0], "set 100\n");
  pthread_t clerk;
  void *other, *own;
  if (pthread_create(&clerk, 0, withdraw, &stores[1])) return FAILED + 3;
  own = withdraw(&stores[0]);
  pthread_join(clerk, &other);
  return (int)((long)own + (long)other);
}

int main(int count, char **words) {
  (void)count;
  return strcmp(words[1], "race") == 0 ? race() : steps();
}
