// run:
#include <everett.h>
#include <stdlib.h>

struct node {
  struct node *next;
  unsigned char key;
};

static struct node *insert(struct node *list, struct node *node) {
  if (!list || node->key < list->key) {
    node->next = list;
    return node;
  }
  list->next = insert(list->next, node);
  return list;
}

int main(void) {
  struct node *list = NULL;
  for (int i = 0; i < 3; i++) {
    struct node *node = malloc(sizeof *node);
    everett_make_symbolic(&node->key, 1, "key");
    list = insert(list, node);
  }
  for (struct node *node = list; node->next; node = node->next)
    if (node->key > node->next->key)
      everett_report("not sorted");
  while (list) {
    struct node *next = list->next;
    free(list);
    list = next;
  }
  return 0;
}
