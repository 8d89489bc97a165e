// run:
// finding: use-after-free 18
#include <stdlib.h>

struct node {
  struct node *next;
  int value;
};

int main(void) {
  struct node *list = NULL;
  for (int i = 0; i < 3; i++) {
    struct node *node = malloc(sizeof *node);
    node->next = list;
    node->value = i;
    list = node;
  }
  for (struct node *node = list; node; node = node->next) // here
    free(node);
  return 0;
}
