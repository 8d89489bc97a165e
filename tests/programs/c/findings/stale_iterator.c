// run:
// finding: use-after-free 27
#include <everett.h>
#include <stdlib.h>

// A pointer into a vector outlives its growth.
struct vector {
  int *items;
  unsigned used, room;
};

static void push(struct vector *vector, int item) {
  if (vector->used == vector->room) {
    vector->room = vector->room ? 2 * vector->room : 2;
    vector->items = realloc(vector->items, vector->room * sizeof *vector->items);
  }
  vector->items[vector->used++] = item;
}

int main(void) {
  struct vector vector = {0};
  push(&vector, 1);
  int *first = &vector.items[0];
  unsigned more = everett_symbolic_u8("more") % 3;
  for (unsigned i = 0; i < more; i++)
    push(&vector, (int)i);
  int value = *first; // here
  free(vector.items);
  return value - 1;
}
