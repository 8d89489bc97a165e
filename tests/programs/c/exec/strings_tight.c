// String functions on blocks without a byte to spare: none reads past the end.
// build: -w
// exec:
// run:
// paths: 1
#define _GNU_SOURCE
#include <string.h>
#include <strings.h>
#include <stdlib.h>
#include <stdio.h>
#include <wchar.h>
#include <locale.h>
static char *tight(const char *s) { size_t n = strlen(s) + 1; char *p = malloc(n); return memcpy(p, s, n); }
static wchar_t *wide(const wchar_t *s) { size_t n = (wcslen(s) + 1) * sizeof *s; wchar_t *p = malloc(n); return memcpy(p, s, n); }
int main(int argc, char **argv) {
  setlocale(LC_ALL, "C.UTF-8");
  char buf[64]; wchar_t w[64]; const char *s; const wchar_t *ws; char *save; wchar_t *wsave; mbstate_t st = {0};
  for (int len = 1; len < 40; len += 7) {
    char text[64] = {0}; memset(text, 'a', len); text[len - 1] = 'z';
    wchar_t wtext[64] = {0}; for (int i = 0; i < len; i++) wtext[i] = text[i];
    char *a = tight(text), *b = tight("zy"); wchar_t *wa = wide(wtext), *wb = wide(L"zy");
    buf[0] = 0; strcat(buf, a); strncat(buf, b, 9);
    printf("%zu %zu %zu %p\n", strlen(buf), strspn(a, b), strcspn(a, b), (void *)(strpbrk(a, b) ? 1L : 0L));
    printf("%d %d %d %d\n", strcmp(a, b) < 0, strcasecmp(a, b) < 0, strncasecmp(a, b, 50) < 0, strcoll(a, b) < 0);
    printf("%zu %d %d %d\n", strxfrm(buf, a, 60), strstr(a, b) != 0, strcasestr(a, b) != 0, memmem(a, len, b, 2) != 0);
    strncpy(buf, a, 60); stpncpy(buf, a, 60); buf[0] = 0; strlcat(buf, a, 60); strlcpy(buf, a, 60);
    char *t = tight(text); printf("%s\n", strtok_r(t, "z", &save) ? "tok" : "none"); 
    t = tight(text); char *t2 = t; strsep(&t2, "z"); 
    t = tight(text); strtok(t, "z"); index(a, 'z'); rindex(a, 'z'); strverscmp(a, b);
    wcscpy(w, wa); wcscat(w, wb); wcsncat(w, wb, 9); wcsncpy(w, wa, 60); wcpcpy(w, wa); wcpncpy(w, wa, 60);
    printf("%zu %zu %zu %d %d %d\n", wcsspn(wa, wb), wcscspn(wa, wb), wcsnlen(wa, 90), wcspbrk(wa, wb) != 0, wcsrchr(wa, 'z') != 0, wcscmp(wa, wb) < 0);
    printf("%d %d\n", wcsncmp(wa, wb, 90) < 0, wcsstr(wa, wb) != 0); wcstok(wide(wtext), L"z", &wsave); wcscoll(wa, wb); wcsxfrm(w, wa, 60); wcscasecmp(wa, wb); 
    s = a; printf("%zu\n", mbsrtowcs(w, &s, 60, 0)); s = a; printf("%zu\n", mbsrtowcs(0, &s, 0, &st)); printf("%zu %zu\n", mbstowcs(w, a, 60), mbstowcs(0, a, 0));
    s = a; printf("%zu\n", mbsnrtowcs(w, &s, len + 1, 60, 0)); s = a; printf("%zu\n", mbsnrtowcs(w, &s, len + 1, 3, 0));
    ws = wa; printf("%zu\n", wcsrtombs(buf, &ws, 60, 0)); ws = wa; printf("%zu\n", wcsnrtombs(buf, &ws, len + 1, 60, 0)); 
    printf("%ls %.3ls\n", wa, wa); printf("%d\n", wprintf(L"") );
    printf("%d\n", atoi(tight("12345"))); printf("%g\n", strtod(tight("1.5"), 0)); printf("%ld\n", wcstol(wide(L"77"), 0, 10));
    snprintf(buf, 20, "%.5s", a); sscanf(tight("12 ab"), "%d %s", &argc, buf); swscanf(wide(L"12 ab"), L"%d", &argc);
  }
  const char *bad = "ab\xc3"; s = bad; printf("%zd %ld\n", mbsrtowcs(w, &s, 10, 0), (long)(s - bad));
  const char *good = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z"; s = good; printf("%zd %d %x\n", mbsrtowcs(w, &s, 10, 0), s == 0, w[3]);
  s = good; printf("%zd %ld\n", mbsrtowcs(w, &s, 3, 0), (long)(s - good)); s = good; printf("%zd %ld\n", mbsrtowcs(0, &s, 0, 0), (long)(s - good));
  st = (mbstate_t){0}; printf("%zd\n", mbrtowc(w, "\xe2", 1, &st)); s = "\x82\xac!"; printf("%zd %x %x\n", mbsrtowcs(w, &s, 10, &st), w[0], w[1]);
  return 0;
}
