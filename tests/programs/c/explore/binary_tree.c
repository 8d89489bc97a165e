// run:
#include <assert.h>
#include <everett.h>
#include <stdlib.h>

struct tree {
  struct tree *left, *right;
  signed char key;
};

static struct tree *insert(struct tree *tree, signed char key) {
  if (!tree) {
    tree = calloc(1, sizeof *tree);
    tree->key = key;
  } else if (key < tree->key) {
    tree->left = insert(tree->left, key);
  } else if (key > tree->key) {
    tree->right = insert(tree->right, key);
  }
  return tree;
}

static void check(struct tree *tree, int low, int high) {
  if (!tree)
    return;
  assert(tree->key > low && tree->key < high);
  check(tree->left, low, tree->key);
  check(tree->right, tree->key, high);
}

static void drop(struct tree *tree) {
  if (!tree)
    return;
  drop(tree->left);
  drop(tree->right);
  free(tree);
}

int main(void) {
  struct tree *tree = NULL;
  signed char keys[4];
  everett_make_symbolic(keys, sizeof keys, "keys");
  for (int i = 0; i < 4; i++)
    tree = insert(tree, keys[i]);
  check(tree, -129, 128);
  drop(tree);
  return 0;
}
