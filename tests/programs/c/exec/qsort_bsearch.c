// exec:
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
  char name[12];
  int age;
  double weight;
};

static int by_int(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct record *)a)->name, ((const struct record *)b)->name);
}

int main(void) {
  int numbers[200];
  unsigned seed = 12345;
  for (int i = 0; i < 200; i++) {
    seed = seed * 1103515245 + 12345;
    numbers[i] = (int)(seed >> 16) % 1000;
  }
  qsort(numbers, 200, sizeof *numbers, by_int);
  for (int i = 0; i < 200; i += 13)
    printf("%d ", numbers[i]);
  puts("");
  int key = numbers[77];
  int *found = bsearch(&key, numbers, 200, sizeof *numbers, by_int);
  printf("%d\n", found ? *found == key : -1);
  key = 5000;
  printf("%d\n", bsearch(&key, numbers, 200, sizeof *numbers, by_int) == NULL);
  struct record people[] = {{"mallory", 3, 1.5}, {"alice", 1, 2.5}, {"bob", 2, 3.5}, {"eve", 4, 4.5}};
  qsort(people, 4, sizeof *people, by_name);
  for (int i = 0; i < 4; i++)
    printf("%s %d %g\n", people[i].name, people[i].age, people[i].weight);
  return 0;
}
