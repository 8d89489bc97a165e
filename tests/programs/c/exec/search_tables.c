// exec:
#define _GNU_SOURCE
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) { return strcmp(a, b); }
static int backwards(const void *a, const void *b, void *sign) { return *(int *)sign * (*(const int *)a - *(const int *)b); }
static int printed;
static void show(const void *node, VISIT order, int depth) {
  (void)depth;
  if (order == postorder || order == leaf)
    printf("%d%s ", printed++, *(char *const *)node);
}

int main(void) {
  const char *words[] = {"pear", "apple", "fig", "kiwi", "banana"};
  void *root = NULL;
  for (int i = 0; i < 5; i++)
    tsearch(words[i], &root, compare);
  printf("%d %d\n", tfind("fig", &root, compare) != NULL, tfind("plum", &root, compare) == NULL);
  tdelete("kiwi", &root, compare);
  twalk(root, show);
  puts("");
  hcreate(10);
  for (int i = 0; i < 5; i++)
    hsearch((ENTRY){(char *)words[i], (void *)(long)i}, ENTER);
  ENTRY *found = hsearch((ENTRY){"fig", NULL}, FIND);
  printf("%ld %d\n", (long)found->data, hsearch((ENTRY){"plum", NULL}, FIND) == NULL);
  hdestroy();
  int numbers[] = {3, 1, 2}, sign = -1;
  qsort_r(numbers, 3, sizeof *numbers, backwards, &sign);
  printf("%d %d %d\n", numbers[0], numbers[1], numbers[2]);
  return 0;
}
