// exec:
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char *block = malloc(10);
  strcpy(block, "123456789");
  block = realloc(block, 1000);
  printf("%s\n", block);
  memset(block + 10, 'x', 990);
  block = realloc(block, 5);
  printf("%.5s\n", block);
  free(block);
  int *zeroed = calloc(100, sizeof *zeroed), sum = 0;
  for (int i = 0; i < 100; i++)
    sum += zeroed[i];
  printf("%d\n", sum);
  free(zeroed);
  free(NULL);
  char *fresh = realloc(NULL, 3);
  printf("%d\n", fresh != NULL);
  free(fresh);
  void *aligned = NULL;
  printf("%d %d\n", posix_memalign(&aligned, 256, 100), (int)((uintptr_t)aligned % 256));
  free(aligned);
  aligned = aligned_alloc(64, 128);
  printf("%d\n", (int)((uintptr_t)aligned % 64));
  free(aligned);
  volatile size_t huge = SIZE_MAX / 2;
  printf("%d\n", calloc(huge, 4) == NULL);
  void *blocks[1000];
  for (int i = 0; i < 1000; i++) {
    blocks[i] = malloc((size_t)i);
    memset(blocks[i], i, (size_t)i);
  }
  for (int i = 999; i >= 0; i -= 2)
    free(blocks[i]);
  for (int i = 0; i < 1000; i += 2) {
    blocks[i] = realloc(blocks[i], (size_t)i * 3 + 1);
    if (i && ((unsigned char *)blocks[i])[i - 1] != (unsigned char)i)
      puts("lost");
    free(blocks[i]);
  }
  char *text = NULL;
  size_t room = 0, used = 0;
  for (int i = 0; i < 500; i++) {
    if (used == room)
      text = realloc(text, room = room ? room * 2 : 1);
    text[used++] = (char)('a' + i % 26);
  }
  printf("%zu %.30s\n", room, text);
  free(text);
  return 0;
}
