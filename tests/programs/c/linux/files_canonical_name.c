// run:
// paths: 1
// glibc's name for `realpath` with a new block is declared, and has a definition.
#define _GNU_SOURCE
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
  assert(mkdir("/tmp/canonical", 0700) == 0 || access("/tmp/canonical", F_OK) == 0);
  char *name = canonicalize_file_name("/tmp/./canonical/../canonical");
  assert(name && strcmp(name, "/tmp/canonical") == 0);
  free(name);
  assert(rmdir("/tmp/canonical") == 0);
  assert(!canonicalize_file_name("/tmp/canonical/none"));
  return 0;
}
