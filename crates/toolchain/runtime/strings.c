// String functions in their plainest form, in place of the library's.
//
// The library's versions read a vector or a word past the end of objects, which a bounds-checked
// execution reports, or call the allocator's insides, which hides an allocation from it. All
// symbols are weak: a program may define its own.

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <wchar.h>

#define LIBRARY __attribute__((weak))

LIBRARY size_t strlen(const char *s) {
  size_t n = 0;
  while (s[n]) n++;
  return n;
}

LIBRARY size_t strnlen(const char *s, size_t max) {
  size_t n = 0;
  while (n < max && s[n]) n++;
  return n;
}

LIBRARY void *memchr(const void *s, int c, size_t n) {
  const unsigned char *p = s;
  for (; n; n--, p++)
    if (*p == (unsigned char)c) return (void *)p;
  return 0;
}

LIBRARY void *memrchr(const void *s, int c, size_t n) {
  const unsigned char *p = s;
  while (n--)
    if (p[n] == (unsigned char)c) return (void *)(p + n);
  return 0;
}
LIBRARY void *__memrchr(const void *s, int c, size_t n) { return memrchr(s, c, n); }

LIBRARY int memcmp(const void *a, const void *b, size_t n) {
  const unsigned char *p = a, *q = b;
  for (; n; n--, p++, q++)
    if (*p != *q) return *p - *q;
  return 0;
}
LIBRARY int bcmp(const void *a, const void *b, size_t n) { return memcmp(a, b, n); }

LIBRARY void *memccpy(void *restrict to, const void *restrict from, int c, size_t n) {
  unsigned char *d = to;
  const unsigned char *s = from;
  while (n--)
    if ((*d++ = *s++) == (unsigned char)c) return d;
  return 0;
}

LIBRARY char *strchrnul(const char *s, int c) {
  while (*s && *s != (char)c) s++;
  return (char *)s;
}
LIBRARY char *__strchrnul(const char *s, int c) { return strchrnul(s, c); }

LIBRARY char *strchr(const char *s, int c) {
  s = strchrnul(s, c);
  return *s == (char)c ? (char *)s : 0;
}
LIBRARY char *index(const char *s, int c) { return strchr(s, c); }

LIBRARY char *strrchr(const char *s, int c) { return memrchr(s, c, strlen(s) + 1); }
LIBRARY char *rindex(const char *s, int c) { return strrchr(s, c); }

LIBRARY char *stpcpy(char *restrict to, const char *restrict from) {
  while ((*to = *from)) to++, from++;
  return to;
}
LIBRARY char *__stpcpy(char *restrict to, const char *restrict from) { return stpcpy(to, from); }

LIBRARY char *strcpy(char *restrict to, const char *restrict from) {
  stpcpy(to, from);
  return to;
}

LIBRARY size_t strlcpy(char *to, const char *from, size_t n) {
  size_t i = 0;
  for (; n && i < n - 1 && from[i]; i++) to[i] = from[i];
  if (n) to[i] = 0;
  return i + strlen(from + i);
}

LIBRARY int strcmp(const char *a, const char *b) {
  for (; *a == *b && *a; a++, b++) continue;
  return *(unsigned char *)a - *(unsigned char *)b;
}

LIBRARY int strncmp(const char *a, const char *b, size_t n) {
  for (; n && *a == *b && *a; a++, b++, n--) continue;
  return n ? *(unsigned char *)a - *(unsigned char *)b : 0;
}

LIBRARY void *memmem(const void *hay, size_t hay_size, const void *needle, size_t size) {
  const unsigned char *h = hay;
  for (; hay_size >= size; h++, hay_size--)
    if (!memcmp(h, needle, size)) return (void *)h;
  return 0;
}

LIBRARY char *strstr(const char *hay, const char *needle) {
  for (;; hay++) {
    size_t i = 0;
    while (needle[i] && hay[i] == needle[i]) i++;
    if (!needle[i]) return (char *)hay;
    if (!hay[i]) return 0;
  }
}

LIBRARY char *strdup(const char *s) {
  size_t size = strlen(s) + 1;
  char *copy = malloc(size);
  if (!copy) return 0;
  for (size_t i = 0; i < size; i++) copy[i] = s[i];
  return copy;
}

LIBRARY char *strndup(const char *s, size_t max) {
  size_t size = strnlen(s, max);
  char *copy = malloc(size + 1);
  if (!copy) return 0;
  for (size_t i = 0; i < size; i++) copy[i] = s[i];
  copy[size] = 0;
  return copy;
}

LIBRARY size_t wcslen(const wchar_t *s) {
  size_t n = 0;
  while (s[n]) n++;
  return n;
}

LIBRARY wchar_t *wmemchr(const wchar_t *s, wchar_t c, size_t n) {
  for (; n; n--, s++)
    if (*s == c) return (wchar_t *)s;
  return 0;
}

LIBRARY wchar_t *wcschr(const wchar_t *s, wchar_t c) {
  for (; *s != c; s++)
    if (!*s) return 0;
  return (wchar_t *)s;
}

LIBRARY wchar_t *wcsstr(const wchar_t *restrict hay, const wchar_t *restrict needle) {
  for (;; hay++) {
    size_t i = 0;
    while (needle[i] && hay[i] == needle[i]) i++;
    if (!needle[i]) return (wchar_t *)hay;
    if (!hay[i]) return 0;
  }
}

LIBRARY wchar_t *wcsdup(const wchar_t *s) {
  size_t count = wcslen(s) + 1;
  wchar_t *copy = malloc(count * sizeof *copy);
  if (!copy) return 0;
  for (size_t i = 0; i < count; i++) copy[i] = s[i];
  return copy;
}

LIBRARY size_t mbsrtowcs(wchar_t *restrict to, const char **restrict from, size_t max, mbstate_t *restrict state) {
  mbstate_t own = state ? *state : (mbstate_t){0};
  const char *s = *from;
  // Without a destination nothing is changed, neither the position nor the state.
  if (to && state) *state = (mbstate_t){0};
  for (size_t n = 0;; n++) {
    if (to && n == max) {
      *from = s;
      return n;
    }
    wchar_t c;
    size_t length = mbrtowc(&c, s, MB_LEN_MAX, &own);
    if (length > MB_LEN_MAX) {
      if (to) *from = s;
      return -1;
    }
    if (to) to[n] = c;
    if (!c) {
      if (to) *from = 0;
      return n;
    }
    s += length;
  }
}
