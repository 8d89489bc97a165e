/* Reads the settings of a server, and does not check one strdup (AFEX, Fig. 3.7).

   Modules allocate caches, and go without them if they must. Whoever reads a directive checks its memory, tells that
   it is out of memory, and ends with 1. But strdup allocates, too, and the author of the handler of `alias` forgot
   that: without memory, the server crashes and says nothing.

   `fixed` as argument: the handler checks it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CACHES = 40 };

static const char *const directives[] = {
    "listen 80",      "root /srv",  "user web",   "group web",      "timeout 30",   "alias /icons /srv/i",
    "index a.html",   "index b.htm", "log /log",  "level warn",     "alias /s /t",  "errors 404 /404",
    "threads 8",      "backlog 64", "keep 15",    "hide yes",       "type txt",     "charset utf-8",
};

struct directive {
  struct directive *next;
  char *name, *value;
};

static void *caches[CACHES];
static int is_fixed;

static void *checked(void *memory) {
  if (!memory) {
    fputs("settings: out of memory\n", stderr);
    exit(1);
  }
  return memory;
}

static void load_module(int number) {
  caches[number] = malloc(64 + number);
}

static struct directive *read_directive(const char *line, struct directive *next) {
  struct directive *directive = checked(malloc(sizeof *directive));
  size_t length = strcspn(line, " ");
  directive->next = next;
  directive->name = checked(malloc(length + 1));
  memcpy(directive->name, line, length);
  directive->name[length] = 0;
  if (strcmp(directive->name, "alias")) {
    const char *value = line + length + 1;
    directive->value = strcpy(checked(malloc(strlen(value) + 1)), value);
    return directive;
  }
  directive->value = strdup(line + length + 1);
  if (is_fixed) checked(directive->value);
  directive->value[strcspn(directive->value, " ")] = 0;
  return directive;
}

int main(int count, char **words) {
  struct directive *all = NULL;
  is_fixed = count > 1 && !strcmp(words[1], "fixed");
  for (int number = 0; number < CACHES / 2; number++) load_module(number);
  for (size_t line = 0; line < sizeof directives / sizeof *directives; line++)
    all = read_directive(directives[line], all);
  for (int number = CACHES / 2; number < CACHES; number++) load_module(number);
  int known = 0;
  for (; all; all = all->next) known++;
  printf("%d directives\n", known);
  return 0;
}
