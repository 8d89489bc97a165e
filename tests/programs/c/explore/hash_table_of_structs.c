// A table of structs, hashed by symbolic keys: paths tell keys apart, not places.
// run:
// paths: 48
#include <everett.h>
#include <string.h>

#define SIZE 256

static struct entry {
  char key[4];
  int value;
  int used;
} table[SIZE];

static unsigned hash(const char *key) {
  unsigned hash = 5381;
  while (*key)
    hash = hash * 33 + (unsigned char)*key++;
  return hash % SIZE;
}

static void put(const char *key, int value) {
  unsigned first = hash(key);
  for (int i = 0; i < SIZE; i++) {
    struct entry *entry = &table[(first + i) % SIZE];
    if (!entry->used) {
      strcpy(entry->key, key);
      entry->value = value;
      entry->used = 1;
      return;
    }
    if (!strcmp(entry->key, key)) {
      entry->value = value;
      return;
    }
  }
}

static int get(const char *key) {
  unsigned first = hash(key);
  for (int i = 0; i < SIZE; i++) {
    struct entry *entry = &table[(first + i) % SIZE];
    if (!entry->used)
      return -1;
    if (!strcmp(entry->key, key))
      return entry->value;
  }
  return -1;
}

int main(void) {
  char a[4] = {0}, b[4] = {0};
  everett_make_symbolic(a, 2, "a");
  everett_make_symbolic(b, 2, "b");
  put(a, 1);
  put(b, 2);
  put("ab", 3);
  return get(a) + 10 * get(b);
}
