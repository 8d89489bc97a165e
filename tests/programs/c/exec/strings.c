// exec:
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int sign(int x) { return (x > 0) - (x < 0); }

int main(void) {
  char buffer[64] = "hello";
  printf("%zu %zu\n", strlen(buffer), strnlen(buffer, 3));
  puts(strcat(buffer, " world"));
  puts(strncat(buffer, "!!!!", 2));
  printf("%d %d %d\n", sign(strcmp("a", "b")), sign(strcmp("b", "a")), sign(strcmp("a", "a")));
  printf("%d %d\n", sign(strncmp("abcd", "abzz", 2)), sign(strncmp("abcd", "abzz", 3)));
  printf("%d %d\n", sign(strcasecmp("HeLLo", "hEllO")), sign(strncasecmp("ABc", "abD", 3)));
  puts(strchr(buffer, 'o'));
  puts(strrchr(buffer, 'o'));
  puts(strstr(buffer, "wor"));
  printf("%d\n", strstr(buffer, "xyz") == NULL);
  puts(strpbrk(buffer, "xyzw"));
  printf("%zu %zu\n", strspn("aabbcc", "ab"), strcspn("aabbcc", "c"));
  char list[] = "one,two;;three";
  for (char *part = strtok(list, ",;"); part; part = strtok(NULL, ",;"))
    printf("<%s>", part);
  puts("");
  char fields[] = "a::b";
  char *rest = fields, *field;
  while ((field = strsep(&rest, ":")))
    printf("<%s>", field);
  puts("");
  char *copy = strdup("duplicate"), *part = strndup("duplicate", 3);
  printf("%s %s\n", copy, part);
  free(copy);
  free(part);
  char bytes[16];
  memset(bytes, 'x', 15);
  bytes[15] = 0;
  memcpy(bytes + 2, "123", 3);
  memmove(bytes + 3, bytes, 8);
  puts(bytes);
  printf("%d %d\n", sign(memcmp("abc", "abd", 3)), (int)((char *)memchr("abcdef", 'd', 6) - (char *)0 != 0));
  printf("%s\n", (char *)memmem("needle in hay", 13, "in", 2));
  printf("%s %s\n", stpcpy(buffer, "end") - 3, strchrnul("abc", 'z') - 2);
  printf("%s|%s\n", strerror(0), strerror(2));
  char exact[4];
  strncpy(exact, "ab", 4);
  printf("%d %d %d %d\n", exact[0], exact[1], exact[2], exact[3]);
  char small[4];
  printf("%zu %s\n", strlcpy(small, "abcdef", 4), small);
  printf("%d\n", (int)(memrchr("abcabc", 'b', 6) != NULL));
  return 0;
}
