// Functions on long double, in place of the library's.
//
// The library's versions are not written in C: in bitcode they take their argument by pointer
// where C's callers pass a value. Results of these functions are exact, so that any correct version
// gives the same.

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>

#define LIBRARY __attribute__((weak))

union shape {
  long double value;
  struct {
    uint64_t mantissa;
    uint16_t sign_exponent;
  } bits;
};

enum { BIAS = 0x3fff, EXPONENT = 0x7fff };

// Adding and subtracting it rounds to an integer.
static const long double to_integer = 1 / LDBL_EPSILON;

static int exponent_of(long double x) {
  union shape u = {x};
  return u.bits.sign_exponent & EXPONENT;
}

static int is_negative(long double x) {
  union shape u = {x};
  return u.bits.sign_exponent >> 15;
}

LIBRARY long double fabsl(long double x) {
  union shape u = {x};
  u.bits.sign_exponent &= EXPONENT;
  return u.value;
}

LIBRARY long double copysignl(long double x, long double y) {
  union shape u = {x}, v = {y};
  u.bits.sign_exponent &= EXPONENT;
  u.bits.sign_exponent |= v.bits.sign_exponent & ~EXPONENT;
  return u.value;
}

LIBRARY long double frexpl(long double x, int *exponent) {
  union shape u = {x};
  int e = exponent_of(x);
  if (!e) {
    if (x == 0) {
      *exponent = 0;
      return x;
    }
    x = frexpl(x * 0x1p120L, exponent);
    *exponent -= 120;
    return x;
  }
  if (e == EXPONENT) return x;
  *exponent = e - (BIAS - 1);
  u.bits.sign_exponent = (uint16_t)((u.bits.sign_exponent & ~EXPONENT) | (BIAS - 1));
  return u.value;
}

LIBRARY long double rintl(long double x) {
  if (exponent_of(x) >= BIAS + LDBL_MANT_DIG - 1) return x;
  long double y = is_negative(x) ? x - to_integer + to_integer : x + to_integer - to_integer;
  return y == 0 ? 0 * x : y;
}

LIBRARY long double floorl(long double x) {
  int e = exponent_of(x);
  if (e >= BIAS + LDBL_MANT_DIG - 1 || x == 0) return x;
  if (e < BIAS) return is_negative(x) ? -1 : 0;
  long double y = rintl(x);
  return y > x ? y - 1 : y;
}

LIBRARY long double ceill(long double x) { return -floorl(-x); }
LIBRARY long double truncl(long double x) {
  return is_negative(x) ? -floorl(-x) : floorl(x);
}

LIBRARY long double roundl(long double x) {
  if (exponent_of(x) >= BIAS + LDBL_MANT_DIG - 1) return x;
  long double size = fabsl(x);
  long double whole = floorl(size);
  if (size - whole >= 0.5L) whole += 1;
  return copysignl(whole, x);
}

LIBRARY long lrintl(long double x) { return (long)rintl(x); }
LIBRARY long lroundl(long double x) { return (long)roundl(x); }

LIBRARY long double modfl(long double x, long double *whole) {
  *whole = truncl(x);
  if (exponent_of(x) == EXPONENT && x == x) return copysignl(0, x);
  return x == x ? copysignl(x - *whole, x) : x;
}

LIBRARY long double fmaxl(long double x, long double y) {
  if (x != x) return y;
  if (y != y) return x;
  if (is_negative(x) != is_negative(y)) return is_negative(x) ? y : x;
  return x < y ? y : x;
}

LIBRARY long double fminl(long double x, long double y) {
  if (x != x) return y;
  if (y != y) return x;
  if (is_negative(x) != is_negative(y)) return is_negative(x) ? x : y;
  return x < y ? x : y;
}

LIBRARY long double fdiml(long double x, long double y) {
  if (x != x) return x;
  if (y != y) return y;
  return x > y ? x - y : 0;
}

LIBRARY long double nanl(const char *tag) {
  (void)tag;
  return __builtin_nanl("");
}

LIBRARY long double sqrtl(long double x) { return __builtin_elementwise_sqrt(x); }

// The remainder, by subtracting the divisor at falling powers of two.
LIBRARY long double fmodl(long double x, long double y) {
  union shape u = {x}, v = {y};
  int ex = exponent_of(x), ey = exponent_of(y);
  if (y == 0 || y != y || ex == EXPONENT) return (x * y) / (x * y);
  if (x == 0 || fabsl(x) < fabsl(y)) return x;
  if (fabsl(x) == fabsl(y)) return 0 * x;
  if (!ex) {
    u.value *= 0x1p120L;
    ex = exponent_of(u.value) - 120;
  }
  if (!ey) {
    v.value *= 0x1p120L;
    ey = exponent_of(v.value) - 120;
  }
  uint64_t mx = u.bits.mantissa, my = v.bits.mantissa;
  // The bit above the mantissa is kept apart: it has no room in 64 bits.
  for (; ex > ey; ex--) {
    if (mx >= my) mx -= my;
    if (mx == 0) return 0 * x;
    int carry = (int)(mx >> 63);
    mx <<= 1;
    if (carry) mx -= my;
  }
  if (mx >= my) mx -= my;
  if (mx == 0) return 0 * x;
  for (; !(mx >> 63); ex--) mx <<= 1;
  int negative = u.bits.sign_exponent >> 15;
  u.bits.mantissa = mx;
  if (ex <= 0) {
    u.bits.sign_exponent = (uint16_t)(ex + 120);
    u.value *= 0x1p-120L;
  } else {
    u.bits.sign_exponent = (uint16_t)ex;
  }
  return negative ? -u.value : u.value;
}

// Division and multiplication of complex numbers, which the compiler calls. The compiler's runtime
// returns them in another way than C's callers expect.
#define PART(z, n) (((long double *)&(z))[n])

// One for an infinity and nothing else, with the sign.
static long double unit(long double x) { return copysignl(__builtin_isinf(x) ? 1 : 0, x); }
// Nothing in place of what is no number, with the sign.
static long double known(long double x) { return x == x ? x : copysignl(0, x); }

LIBRARY long double _Complex __mulxc3(long double a, long double b, long double c, long double d) {
  long double ac = a * c, bd = b * d, ad = a * d, bc = b * c;
  long double _Complex z;
  PART(z, 0) = ac - bd;
  PART(z, 1) = ad + bc;
  if (PART(z, 0) == PART(z, 0) || PART(z, 1) == PART(z, 1)) return z;
  int again = 0;
  if (__builtin_isinf(a) || __builtin_isinf(b)) {
    a = unit(a);
    b = unit(b);
    c = known(c);
    d = known(d);
    again = 1;
  }
  if (__builtin_isinf(c) || __builtin_isinf(d)) {
    c = unit(c);
    d = unit(d);
    a = known(a);
    b = known(b);
    again = 1;
  }
  if (!again && (__builtin_isinf(ac) || __builtin_isinf(bd) || __builtin_isinf(ad) || __builtin_isinf(bc))) {
    a = known(a);
    b = known(b);
    c = known(c);
    d = known(d);
    again = 1;
  }
  if (again) {
    PART(z, 0) = __builtin_infl() * (a * c - b * d);
    PART(z, 1) = __builtin_infl() * (a * d + b * c);
  }
  return z;
}

// Multiplies by a power of two, in halves: the power itself may not be a number.
static long double scaled(long double x, int power) {
  int half[2] = {power / 2, power - power / 2};
  for (int i = 0; i < 2; i++) {
    long double factor = half[i] < 0 ? 0.5L : 2;
    for (int n = half[i] < 0 ? -half[i] : half[i]; n; n >>= 1, factor *= factor)
      if (n & 1) x *= factor;
  }
  return x;
}

LIBRARY long double _Complex __divxc3(long double a, long double b, long double c, long double d) {
  long double most = fmaxl(fabsl(c), fabsl(d));
  int power = 0;
  if (most > 0 && most <= __LDBL_MAX__) {
    // The sum of the squares neither overflows nor vanishes.
    frexpl(most, &power);
    c = scaled(c, -power);
    d = scaled(d, -power);
  }
  long double size = c * c + d * d;
  long double _Complex z;
  PART(z, 0) = scaled((a * c + b * d) / size, -power);
  PART(z, 1) = scaled((b * c - a * d) / size, -power);
  if (PART(z, 0) == PART(z, 0) || PART(z, 1) == PART(z, 1)) return z;
  if (size == 0 && (a == a || b == b)) {
    PART(z, 0) = copysignl(__builtin_infl(), c) * a;
    PART(z, 1) = copysignl(__builtin_infl(), c) * b;
  } else if ((__builtin_isinf(a) || __builtin_isinf(b)) && most <= __LDBL_MAX__) {
    a = unit(a);
    b = unit(b);
    PART(z, 0) = __builtin_infl() * (a * c + b * d);
    PART(z, 1) = __builtin_infl() * (b * c - a * d);
  } else if (__builtin_isinf(most) && a - a == 0 && b - b == 0) {
    c = unit(c);
    d = unit(d);
    PART(z, 0) = 0 * (a * c + b * d);
    PART(z, 1) = 0 * (b * c - a * d);
  }
  return z;
}
