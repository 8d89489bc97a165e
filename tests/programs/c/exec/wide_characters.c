// exec:
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

int main(void) {
  setlocale(LC_ALL, "C.UTF-8");
  const char *text = "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x8e\x89";
  wchar_t wide[32];
  size_t count = mbstowcs(wide, text, 32);
  printf("%zu\n", count);
  for (size_t i = 0; i < count; i++)
    printf("%x ", (unsigned)wide[i]);
  puts("");
  char back[64];
  printf("%zu %d\n", wcstombs(back, wide, 64), strcmp(back, text));
  mbstate_t state;
  memset(&state, 0, sizeof state);
  wchar_t one;
  printf("%zd %zd\n", (ssize_t)mbrtowc(&one, "\xe2\x82", 2, &state), (ssize_t)mbrtowc(&one, "\xac", 1, &state));
  printf("%x %ls %lc\n", (unsigned)one, L"wide", L'\u00fc');
  printf("%d %d\n", wcscmp(L"abc", L"abd") < 0, (int)wcstol(L"-77", NULL, 10));
  printf("%ls\n", wcsstr(L"find the needle", L"needle"));
  wchar_t room[20];
  swprintf(room, 20, L"%d-%ls", 5, L"x");
  printf("%ls %d\n", room, iswupper(L'\u00c9'));
  return 0;
}
