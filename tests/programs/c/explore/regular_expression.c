// run:
// finding: out-of-bounds 18
// finding: out-of-bounds 20
#include <everett.h>

// A matcher that runs over the end of a pattern without an end.
static int matchhere(char *, char *);

static int matchstar(int c, char *re, char *text) {
  do {
    if (matchhere(re, text))
      return 1;
  } while (*text != '\0' && (*text++ == c || c == '.'));
  return 0;
}

static int matchhere(char *re, char *text) {
  if (re[0] == '\0') // here1
    return 1;
  if (re[1] == '*') // here2
    return matchstar(re[0], re + 2, text);
  if (re[0] == '$' && re[1] == '\0')
    return *text == '\0';
  if (*text != '\0' && (re[0] == '.' || re[0] == *text))
    return matchhere(re + 1, text + 1);
  return 0;
}

static int match(char *re, char *text) {
  if (re[0] == '^')
    return matchhere(re + 1, text);
  do {
    if (matchhere(re, text))
      return 1;
  } while (*text++ != '\0');
  return 0;
}

int main(void) {
  char re[5];
  everett_make_symbolic(re, sizeof re, "re");
  match(re, "hello");
  return 0;
}
