// Multiplication and addition with one rounding, and remainders with their quotients, by the functions of the library:
// results and flags are those of the processor.
// build: -O0 -fno-builtin -frounding-math
// exec:
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#pragma STDC FENV_ACCESS ON

static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
static const int shown = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT;

static int flags(void) {
  int raised = fetestexcept(shown);
  feclearexcept(FE_ALL_EXCEPT);
  return raised;
}

int main(void) {
  // Numbers below the smallest normal one, and results half-way between two floats.
  static const double doubles[][3] = {
      {0x1p-1074, 0x1p-1074, 0x1.fffffffffffffp-1022}, {0x1p-1074, -0x1p-1074, 0x1p-1074},
      {0x1.fffffffffffffp0, 0x1.0000000000001p0, -0x1p1}, {0x1p1023, 2, -0x1p1023},
      {INFINITY, 0, 1}, {0x1p-1022, 0.5, 0x1p-1074}};
  static const float floats[][3] = {
      {-0x1.26524ep-54f, -0x1.cb7868p+11f, 0x1.d10f5ep-29f}, {0x1p-120f, 0x1p-120f, 0x1p-149f},
      {0x1.000002p0f, 0x1.fffffep0f, 0x1.000002p-46f}, {0x1.000004p0f, -0x1.fffffep0f, -0x1.fffffep-46f}};
  static const long double extended[][3] = {
      {0x1p-16445L, 0x1p-16445L, 0x1.fffffffffffffffep-16382L}, {1.1L, 1.1L, -1.21L}, {INFINITY, 0, 1},
      {0x1.fffffffffffffffep0L, 0x1.0000000000000002p0L, -2}, {0, INFINITY, NAN}};
  static const long double pairs[][2] = {{INFINITY, 1}, {1, 0}, {0, 0}, {NAN, 1}, {7, 2}, {-7.5L, 2}, {1e30L, 3}};
  for (int mode = 0; mode < 4; mode++) {
    fesetround(modes[mode]);
    flags();
    for (unsigned i = 0; i < sizeof doubles / sizeof *doubles; i++) {
      double result = fma(doubles[i][0], doubles[i][1], doubles[i][2]);
      int raised = flags();
      printf("fma %d %u: %a %x\n", mode, i, isnan(result) ? NAN : result, raised);
    }
    for (unsigned i = 0; i < sizeof floats / sizeof *floats; i++) {
      float result = fmaf(floats[i][0], floats[i][1], floats[i][2]);
      int raised = flags();
      printf("fmaf %d %u: %a %x\n", mode, i, result, raised);
    }
    for (unsigned i = 0; i < sizeof extended / sizeof *extended; i++) {
      long double result = fmal(extended[i][0], extended[i][1], extended[i][2]);
      int raised = flags();
      printf("fmal %d %u: %La %x\n", mode, i, isnan(result) ? (long double)NAN : result, raised);
    }
    fesetround(FE_TONEAREST);
    flags();
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
      int quotient = 0;
      long double result = remquol(pairs[i][0], pairs[i][1], &quotient);
      int raised = flags();
      if (isnan(result)) quotient = 0;
      printf("remquol %d %u: %La %d %x\n", mode, i, isnan(result) ? (long double)NAN : result, quotient, raised);
    }
  }
  return 0;
}
