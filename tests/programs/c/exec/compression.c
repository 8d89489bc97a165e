// build: -O2
// exec:
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// LZ77 with a hash table, and back.
static size_t compress(const unsigned char *in, size_t size, unsigned char *out) {
  size_t last[4096], at = 0, used = 0;
  memset(last, 255, sizeof last);
  while (at < size) {
    size_t length = 0, distance = 0;
    if (at + 3 < size) {
      unsigned key = (in[at] * 2654435761u + in[at + 1] * 40503u + in[at + 2]) & 4095;
      if (last[key] < at && at - last[key] < 256) {
        distance = at - last[key];
        while (length < 255 && at + length < size && in[at + length] == in[at + length - distance])
          length++;
      }
      last[key] = at;
    }
    if (length > 3) {
      out[used++] = 0;
      out[used++] = (unsigned char)length;
      out[used++] = (unsigned char)distance;
      at += length;
    } else {
      if (in[at] == 0)
        out[used++] = 0, out[used++] = 0;
      else
        out[used++] = in[at];
      at++;
    }
  }
  return used;
}

static size_t expand(const unsigned char *in, size_t size, unsigned char *out) {
  size_t used = 0;
  for (size_t at = 0; at < size; at++) {
    if (in[at] != 0) {
      out[used++] = in[at];
    } else if (in[++at] == 0) {
      out[used++] = 0;
    } else {
      size_t length = in[at++], distance = in[at];
      while (length--) {
        out[used] = out[used - distance];
        used++;
      }
    }
  }
  return used;
}

int main(void) {
  enum { SIZE = 5000 };
  unsigned char *text = malloc(SIZE), *packed = malloc(2 * SIZE), *back = malloc(SIZE);
  for (int i = 0; i < SIZE; i++)
    text[i] = (unsigned char)("the quick brown fox "[(i * i / 50) % 20] * (i % 97 != 0));
  size_t size = compress(text, SIZE, packed);
  size_t again = expand(packed, size, back);
  unsigned hash = 0;
  for (size_t i = 0; i < size; i++)
    hash = hash * 31 + packed[i];
  printf("%zu %zu %d %u\n", size, again, memcmp(text, back, SIZE), hash);
  free(text);
  free(packed);
  free(back);
  return 0;
}
