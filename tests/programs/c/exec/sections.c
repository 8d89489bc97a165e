// exec:
#include <stdio.h>

struct entry {
  const char *name;
  int value;
};
#define ENTRY(n, v) __attribute__((used, section("entries"))) static const struct entry entry_##n = {#n, v}
ENTRY(one, 1);
ENTRY(two, 2);
ENTRY(three, 3);
extern const struct entry __start_entries[], __stop_entries[];

int main(void) {
  int sum = 0;
  for (const struct entry *entry = __start_entries; entry < __stop_entries; entry++)
    sum += entry->value;
  printf("%d %d\n", sum, (int)(__stop_entries - __start_entries));
  return 0;
}
