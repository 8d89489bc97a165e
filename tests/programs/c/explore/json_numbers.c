// run:
// args: --sym-arg 3
#include <ctype.h>
#include <stdio.h>

// Grammar: [-] (0 | [1-9] digits) [. digits]
static const char *number(const char *p) {
  if (*p == '-')
    p++;
  if (*p == '0')
    p++;
  else if (isdigit((unsigned char)*p))
    while (isdigit((unsigned char)*p))
      p++;
  else
    return NULL;
  if (*p == '.') {
    p++;
    if (!isdigit((unsigned char)*p))
      return NULL;
    while (isdigit((unsigned char)*p))
      p++;
  }
  return p;
}

int main(int argc, char **argv) {
  const char *end = number(argv[argc - 1]);
  return end != NULL && *end == 0;
}
