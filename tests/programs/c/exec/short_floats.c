// Short decimal numbers are what the compiler makes of them, and end where the C standard says.
// exec:
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

static void is(const char *text, int expected) {
  if (expected) return;
  printf("wrong: %s\n", text);
  wrong++;
}

// The value in each type, alone and as a field.
#define NUMBER(text)                                              \
  do {                                                            \
    is(#text, strtof(#text, NULL) == text##f);                    \
    is(#text, strtod(#text, NULL) == text);                       \
    is(#text, strtold(#text, NULL) == text##L);                   \
    is("-" #text, strtod("-" #text " ", NULL) == -text);          \
    double field;                                                 \
    is(#text, sscanf(#text, "%lf", &field) == 1 && field == text); \
  } while (0)

// The number of characters that belong to the number.
static void ends(const char *text, int length, double value) {
  char *end;
  is(text, strtod(text, &end) == value && end - text == length);
}

static void rounded(int mode, const char *text, double expected) {
  fesetround(mode);
  double value = strtod(text, NULL);
  fesetround(FE_TONEAREST);
  is(text, value == expected);
}

// The same number with more digits takes the general method.
static void is_same(int digits, unsigned integer, int exponent) {
  static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  char text[64], general[64];
  snprintf(text, sizeof text, "%c%ue%d", digits & 1 ? '-' : '+', integer, exponent);
  snprintf(general, sizeof general, "%c%u.0000000000000000000e%d", digits & 1 ? '-' : '+', integer, exponent);
  for (int i = 0; i < 4; i++) {
    fesetround(modes[i]);
    double one = strtod(text, NULL), other = strtod(general, NULL);
    float small = strtof(text, NULL), same = strtof(general, NULL);
    fesetround(FE_TONEAREST);
    is(text, one == other && small == same);
  }
}

int main(void) {
  unsigned number = 1;
  for (int i = 0; i < 300; i++) {
    number = number * 1664525 + 1013904223;
    is_same(i, number >> (8 + i % 24), (int)(number >> 3) % (i % 3 ? 40 : 300) - (i % 2 ? 20 : 150));
  }
  NUMBER(0.0);
  NUMBER(0.1);
  NUMBER(12.34);
  NUMBER(99.995);
  NUMBER(1e22);
  NUMBER(1e23);
  NUMBER(3e-22);
  NUMBER(7e-23);
  NUMBER(9999999e10);
  NUMBER(16777217.0);
  NUMBER(123456789012345e-5);
  NUMBER(1234567890123456e-5);
  NUMBER(999999999999999999e-27);
  NUMBER(9007199254740993.0);
  NUMBER(0.000000000000000000001);
  NUMBER(1e-30);
  ends("", 0, 0);
  ends(".", 0, 0);
  ends("+", 0, 0);
  ends("e5", 0, 0);
  ends("1.", 2, 1);
  ends(".5", 2, 0.5);
  ends("1..5", 2, 1);
  ends("1.2.3", 3, 1.2);
  ends("1e", 1, 1);
  ends("1e+", 1, 1);
  ends("1.5e-x", 3, 1.5);
  ends("1E5e", 3, 1e5);
  ends("2e0003", 6, 2000);
  ends("0x1p4", 5, 16);
  ends("0x", 1, 0);
  ends("1x", 1, 1);
  ends("  \t7e1 ", 6, 70);
  ends("- 1", 0, 0);
  is("-0", signbit(strtod("-0", NULL)) && signbit(strtof("-0.0e7", NULL)) && !signbit(strtod("0", NULL)));
  rounded(FE_UPWARD, "0.1", 0x1.999999999999ap-4);
  rounded(FE_DOWNWARD, "0.1", 0x1.9999999999999p-4);
  rounded(FE_UPWARD, "-0.1", -0x1.9999999999999p-4);
  rounded(FE_TOWARDZERO, "2e22", 2e22);
  double first = 0;
  int second = 0, length = 0;
  is("width", sscanf("12.345", "%3lf%d%n", &first, &second, &length) == 2 && first == 12 && second == 345);
  is("width of an exponent", sscanf("1e23", "%3lf%d", &first, &second) == 2 && first == 100 && second == 3);
  is("no exponent", sscanf("1e", "%lf", &first) == 0);
  is("two fields", sscanf("1.5,25", "%lf,%d", &first, &second) == 2 && first == 1.5 && second == 25);
  FILE *file = tmpfile();
  fputs("0.25 8e2 ", file);
  rewind(file);
  is("a file", fscanf(file, "%lf", &first) == 1 && first == 0.25 && fscanf(file, "%lf", &first) == 1 && first == 800);
  printf("%d wrong\n", wrong);
  return wrong;
}
