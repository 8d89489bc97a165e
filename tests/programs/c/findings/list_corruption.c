// run:
// finding: use-after-free 24
#include <everett.h>
#include <stdlib.h>

struct node {
  struct node *next;
  int value;
};

static struct node *head;

static void add(int value) {
  struct node *node = malloc(sizeof *node);
  node->value = value;
  node->next = head;
  head = node;
}

// Forgets to move the head where the first node goes.
static void drop(int value) {
  struct node *previous = NULL;
  for (struct node *node = head; node; previous = node, node = node->next)
    if (node->value == value) { // here
      if (previous)
        previous->next = node->next;
      free(node);
      return;
    }
}

int main(void) {
  for (int i = 0; i < 3; i++)
    add(i);
  drop((int)everett_range(0, 3, "first"));
  drop((int)everett_range(0, 3, "second"));
  return 0;
}
