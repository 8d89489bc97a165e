// Short decimal numbers as text, before the library's general method, which computes with an array of digits in loops
// whose course depends on each digit. An integer that a type holds exactly, multiplied or divided by a power of ten
// that it holds exactly, is the number of that type nearest to the decimal one, in every rounding mode. For other
// powers, the number is computed as a `long double`, whose error is a few units; nearly always, it is rounded in the
// same way.

#define __floatscan general_floatscan
#include "floatscan.c"
#undef __floatscan

hidden long double __floatscan(FILE *, int, int);

// The most digits of an integer that a `long double` holds.
#define MOST_DIGITS 18
// The least integer and the greatest power of ten that a `float`, a `double` and a `long double` do not hold.
static const long long too_many[] = {10000000, 1000000000000000, LLONG_MAX};
static const unsigned char most_power[] = {10, 22, 27};
// Up to this power of ten, all such numbers are normal ones of the type.
static const short most_scale[] = {18, 280, 0};

static const float float_powers[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
static const double double_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
static const long double long_powers[] = {
    1e0L, 1e1L, 1e2L, 1e3L, 1e4L, 1e5L, 1e6L, 1e7L, 1e8L, 1e9L, 1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L,
    1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
static const long double small_powers[] = {
    1e-0L, 1e-1L, 1e-2L, 1e-3L, 1e-4L, 1e-5L, 1e-6L, 1e-7L, 1e-8L, 1e-9L, 1e-10L, 1e-11L, 1e-12L, 1e-13L, 1e-14L,
    1e-15L, 1e-16L, 1e-17L, 1e-18L, 1e-19L, 1e-20L, 1e-21L, 1e-22L, 1e-23L, 1e-24L, 1e-25L, 1e-26L, 1e-27L};
// Powers of 10^27.
static const long double large_steps[] = {
    1e0L, 1e27L, 1e54L, 1e81L, 1e108L, 1e135L, 1e162L, 1e189L, 1e216L, 1e243L, 1e270L};
static const long double small_steps[] = {
    1e-0L, 1e-27L, 1e-54L, 1e-81L, 1e-108L, 1e-135L, 1e-162L, 1e-189L, 1e-216L, 1e-243L, 1e-270L};

// Returns `sign * digits * 10^power`, rounded once. The sign of a zero is that of the text.
static long double scaled(int sign, long long digits, int power, int prec) {
  if (prec == 0) {
    float value = (float)sign * (float)digits;
    return power < 0 ? value / float_powers[-power] : value * float_powers[power];
  }
  if (prec == 1) {
    double value = (double)sign * (double)digits;
    return power < 0 ? value / double_powers[-power] : value * double_powers[power];
  }
  long double value = (long double)sign * (long double)digits;
  return power < 0 ? value / long_powers[-power] : value * long_powers[power];
}

// The most units by which a `long double` is off after four factors that are rounded, in any mode.
#define ERROR 16

// Returns `digits * 10^power` as a `long double` that is off by a few units.
static long double estimate(int sign, long long digits, int power) {
  long double value = (long double)sign * (long double)digits;
  if (power < 0) return value * small_powers[-power % 27] * small_steps[-power / 27];
  return value * long_powers[power % 27] * large_steps[power / 27];
}

// Returns whether a type with fewer bits rounds everything that is a few units off in the same way: the bits that it
// leaves are neither near those of a number of the type nor near those between two of them.
static int is_sure(long double value, int bits) {
  union {
    long double value;
    uint64_t significand;
  } parts = {value};
  uint64_t half = UINT64_C(1) << (63 - bits);
  return ((parts.significand + ERROR) & (half - 1)) > 2 * ERROR;
}

// What is buffered is looked at, and read only if it is such a number, with what follows it.
long double __floatscan(FILE *f, int prec, int pok) {
  const unsigned char *at = f->rpos, *end = f->shend;
  if (prec < 0 || prec > 2) return general_floatscan(f, prec, pok);
  while (at != end && isspace(*at)) at++;
  int sign = 1;
  if (at != end && (*at == '+' || *at == '-')) sign -= 2 * (*at++ == '-');
  long long digits = 0;
  int count = 0, point = 0, behind = 0;
  for (; at != end; at++) {
    if (*at == '.' && !point) {
      point = 1;
    } else {
      if (*at - '0' >= 10U || ++count > MOST_DIGITS) break;
      digits = digits * 10 + (*at - '0');
      behind += point;
    }
  }
  if (at == end || !count || *at - '0' < 10U) return general_floatscan(f, prec, pok);
  // A hexadecimal number begins with a zero and an `x`.
  if ((*at | 32) == 'x' && count == 1 && !point && !digits) return general_floatscan(f, prec, pok);
  int exponent = 0;
  if ((*at | 32) == 'e') {
    const unsigned char *next = at + 1;
    int direction = 1, length = 0;
    if (next != end && (*next == '+' || *next == '-')) direction -= 2 * (*next++ == '-');
    for (; next != end && *next - '0' < 10U && length < 3; next++, length++) exponent = exponent * 10 + (*next - '0');
    if (next == end || *next - '0' < 10U || (!length && !pok)) return general_floatscan(f, prec, pok);
    exponent *= direction;
    // Without digits, it is no exponent.
    if (length) at = next;
  }
  int power = exponent - behind;
  const unsigned char *start = f->rpos;
  f->rpos = (unsigned char *)at;
  if (digits < too_many[prec] && -most_power[prec] <= power && power <= most_power[prec])
    return scaled(sign, digits, power, prec);
  if (-most_scale[prec] <= power && power <= most_scale[prec]) {
    long double value = estimate(sign, digits, power);
    if (is_sure(value, prec ? DBL_MANT_DIG : FLT_MANT_DIG)) return prec ? (double)value : (float)value;
  }
  f->rpos = (unsigned char *)start;
  return general_floatscan(f, prec, pok);
}
