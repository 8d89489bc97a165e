// Compares everett's own functions on long double and strings with the processor's instructions
// and with plain definitions, on many inputs. Prints "ok" or what differs.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static uint64_t state = 42;
static uint64_t next(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state ^ state >> 29;
}

union shape {
  long double value;
  struct {
    uint64_t mantissa;
    uint16_t sign_exponent;
  } bits;
};

// A number whose exponent is near 0, small, or anything; sometimes denormal or special.
static long double number(void) {
  union shape u = {0};
  uint64_t kind = next() % 8;
  uint64_t exponent = kind < 5 ? 0x3fff - 8 + next() % 80 : kind < 7 ? next() % 0x7fff : 0;
  u.bits.mantissa = next() << (next() % 64);
  if (kind == 7 && next() % 4 == 0) exponent = 0x7fff, u.bits.mantissa = 0;
  if (exponent) u.bits.mantissa |= (uint64_t)1 << 63;
  else u.bits.mantissa &= ~((uint64_t)1 << 63);
  u.bits.sign_exponent = (uint16_t)(exponent | (next() & 0x8000));
  return u.value;
}

static int same(long double a, long double b) {
  union shape u = {a}, v = {b};
  if (a != a && b != b) return 1;
  return u.bits.mantissa == v.bits.mantissa && u.bits.sign_exponent == v.bits.sign_exponent;
}

static long double hardware_remainder(long double x, long double y) {
  unsigned short status;
  do __asm__ volatile("fprem\n\tfnstsw %1" : "+t"(x), "=a"(status) : "u"(y) : "cc");
  while (status & 0x400);
  return x;
}

// Rounds with the processor's mode: 0 nearest, 1 down, 2 up, 3 towards zero.
static long double hardware_round(long double x, int mode) {
  unsigned short before, during;
  __asm__ volatile("fnstcw %0" : "=m"(before));
  during = (unsigned short)((before & ~0x0c00) | mode << 10);
  __asm__ volatile("fldcw %0" : : "m"(during));
  __asm__ volatile("frndint" : "+t"(x));
  __asm__ volatile("fldcw %0" : : "m"(before));
  return x;
}

static int failures;
static void check(const char *what, long double x, long double y, long double got, long double want) {
  if (same(got, want)) return;
  if (failures++ < 10) printf("%s(%La, %La) = %La, not %La\n", what, x, y, got, want);
}

static void long_doubles(void) {
  for (int i = 0; i < 20000; i++) {
    long double x = number(), y = number();
    check("fmodl", x, y, fmodl(x, y), hardware_remainder(x, y));
    check("rintl", x, 0, rintl(x), hardware_round(x, 0));
    check("floorl", x, 0, floorl(x), hardware_round(x, 1));
    check("ceill", x, 0, ceill(x), hardware_round(x, 2));
    check("truncl", x, 0, truncl(x), hardware_round(x, 3));
    int exponent = 0;
    long double fraction = frexpl(x, &exponent);
    check("frexpl", x, 0, scalbnl(fraction, exponent), x);
    if (x != 0 && isfinite(x) && !(fabsl(fraction) >= 0.5L && fabsl(fraction) < 1)) failures++;
    long double whole, part = modfl(x, &whole);
    check("modfl", x, 0, whole, truncl(x));
    if (isfinite(x)) check("modfl", x, 1, part, copysignl(x - truncl(x), x));
    if (x == y || isnan(x) || isnan(y)) continue;
    check("fmaxl", x, y, fmaxl(x, y), x > y ? x : y);
    check("fminl", x, y, fminl(x, y), x < y ? x : y);
    check("fdiml", x, y, fdiml(x, y), x > y ? x - y : 0);
  }
  check("roundl", 2.5L, 0, roundl(2.5L), 3);
  check("roundl", -0.25L, 0, roundl(-0.25L), -0.0L);
  check("fmaxl", 0, 0, fmaxl(-0.0L, 0.0L), 0.0L);
}

static void expect(const char *what, int holds) {
  if (!holds && failures++ < 20) printf("%s differs\n", what);
}

static void strings(void) {
  for (int i = 0; i < 20000; i++) {
    char text[12] = {0}, part[4] = {0}, copy[16];
    size_t length = next() % 12;
    if (length > 11) length = 11;
    for (size_t n = 0; n < length; n++) text[n] = (char)('a' + next() % 3);
    for (size_t n = 0; n < next() % 4; n++) part[n] = (char)('a' + next() % 3);
    char c = (char)('a' + next() % 4);
    size_t first = 0, last = length;
    while (text[first] && text[first] != c) first++;
    while (last > 0 && text[last - 1] != c) last--;
    expect("strlen", strlen(text) == length && strnlen(text, 5) == (length < 5 ? length : 5));
    expect("strchr", strchr(text, c) == (first < length ? text + first : NULL));
    expect("memchr", memchr(text, c, length) == (first < length ? text + first : NULL));
    expect("strrchr", strrchr(text, c) == (last ? text + last - 1 : NULL));
    expect("strchr 0", strchr(text, 0) == text + length && strrchr(text, 0) == text + length);
    char *found = strstr(text, part), *want = NULL;
    for (size_t n = 0; !want && n + strlen(part) <= length; n++)
      if (!memcmp(text + n, part, strlen(part))) want = text + n;
    expect("strstr", found == want && memmem(text, length, part, strlen(part)) == want);
    expect("stpcpy", stpcpy(copy, text) == copy + length && !strcmp(copy, text));
    expect("strncmp", strncmp(copy, text, 20) == 0 && strcmp(text, "~") < 0 && strcmp("\x80", "a") > 0);
    char *twin = strdup(text), *half = strndup(text, 3);
    expect("strdup", !strcmp(twin, text) && strlen(half) == (length < 3 ? length : 3));
    free(twin);
    free(half);
  }
  wchar_t *wide = wcsdup(L"abcabd");
  expect("wide", wcslen(wide) == 6 && wcschr(wide, L'b') == wide + 1 && wcsstr(wide, L"abd") == wide + 3);
  free(wide);
}

int main(void) {
  long_doubles();
  strings();
  puts(failures ? "failed" : "ok");
  return failures != 0;
}
