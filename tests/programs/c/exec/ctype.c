// exec:
#include <ctype.h>
#include <stdio.h>
#include <wchar.h>
#include <wctype.h>

int main(void) {
  for (int c = -1; c < 256; c++)
    printf("%d:%d%d%d%d%d%d%d%d%d%d%d %d %d\n", c, !!isalpha(c), !!isdigit(c), !!isalnum(c), !!isspace(c), !!isupper(c),
           !!islower(c), !!ispunct(c), !!isprint(c), !!iscntrl(c), !!isxdigit(c), !!isgraph(c), toupper(c), tolower(c));
  wchar_t wide[] = L"Wide \u00e9";
  printf("%zu %lc %d\n", wcslen(wide), towupper(L'w'), iswalpha(wide[5]));
  return 0;
}
