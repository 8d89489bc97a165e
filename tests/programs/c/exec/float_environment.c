// Rounding modes and exception flags of arithmetic on all kinds of numbers, as the processor has them. With an argument
// it prints every result, not only their sum.
// exec:
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#pragma STDC FENV_ACCESS ON

static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
static int shows_all;
static uint64_t sum;

static void note(const char *what, int mode, const void *result, size_t size) {
  int flags = fetestexcept(FE_ALL_EXCEPT);
  uint64_t words[2] = {0, 0};
  memcpy(words, result, size);
  sum = (sum ^ words[0]) * 0x100000001b3;
  sum = (sum ^ words[1] ^ (uint64_t)flags) * 0x100000001b3;
  if (shows_all)
    printf("%s %x %lx %lx: %x\n", what, mode, words[1], words[0], flags);
  feclearexcept(FE_ALL_EXCEPT);
}

#define BINARY(type, op, name)                              \
  do {                                                      \
    volatile type x = a[i], y = a[j];                       \
    feclearexcept(FE_ALL_EXCEPT);                           \
    volatile type z = x op y;                               \
    type result = z;                                        \
    note(name, modes[m], &result, sizeof result > 10 ? 10 : sizeof result); \
  } while (0)

#define COMPARE(op, name)                  \
  do {                                     \
    volatile int z = x op y;               \
    int result = z;                        \
    note(name, modes[m], &result, sizeof result); \
  } while (0)

#define CONVERT(to, name)                                   \
  do {                                                      \
    volatile to z = (to)x;                                  \
    to result = z;                                          \
    note(name, modes[m], &result, sizeof result > 10 ? 10 : sizeof result); \
  } while (0)

#define ALL(name, type, square_root)                                                       \
  static void all_##name(const type *a, int count) {                                       \
    for (int m = 0; m < 4; m++) {                                                          \
      fesetround(modes[m]);                                                                \
      sum = 0;                                                                             \
      for (int i = 0; i < count; i++) {                                                    \
        for (int j = 0; j < count; j++) {                                                  \
          BINARY(type, +, "+");                                                            \
          BINARY(type, -, "-");                                                            \
          BINARY(type, *, "*");                                                            \
          BINARY(type, /, "/");                                                            \
          volatile type x = a[i], y = a[j];                                                \
          feclearexcept(FE_ALL_EXCEPT);                                                    \
          COMPARE(<, "<");                                                                 \
          COMPARE(==, "==");                                                               \
        }                                                                                  \
        volatile type x = a[i];                                                            \
        feclearexcept(FE_ALL_EXCEPT);                                                      \
        CONVERT(float, "float");                                                           \
        CONVERT(double, "double");                                                         \
        CONVERT(int, "int");                                                               \
        CONVERT(long, "long");                                                             \
        volatile type z = square_root(x);                                                  \
        type result = z;                                                                   \
        note("sqrt", modes[m], &result, sizeof result > 10 ? 10 : sizeof result);          \
      }                                                                                    \
      printf("%s %x: %016lx\n", #name, fegetround(), sum);                                 \
    }                                                                                      \
    fesetround(FE_TONEAREST);                                                              \
  }

ALL(float, float, sqrtf)
ALL(double, double, sqrt)

static void all_long(void) {
  static const long double a[] = {0,         -0.0L,         1,      -3,     0x1p-16445L, 0x1.8p-16383L,  0x1p-16382L,
                                  INFINITY,  0x1.fffffffffffffffep16383L, 1.0L / 3, 0x1p63L, -0x1p-60L, 0x1.8p-1023L};
  const int count = sizeof a / sizeof a[0];
  for (int m = 0; m < 4; m++) {
    fesetround(modes[m]);
    sum = 0;
    for (int i = 0; i < count; i++) {
      for (int j = 0; j < count; j++) {
        BINARY(long double, +, "+l");
        BINARY(long double, -, "-l");
        BINARY(long double, *, "*l");
        BINARY(long double, /, "/l");
      }
      volatile long double x = a[i];
      feclearexcept(FE_ALL_EXCEPT);
      CONVERT(float, "l to float");
      CONVERT(double, "l to double");
      CONVERT(long, "l to long");
    }
    printf("long double %x: %016lx\n", fegetround(), sum);
  }
  fesetround(FE_TONEAREST);
}

static void integers(void) {
  static const long a[] = {0, 1, -1, 0x7fffffffffffffff, -0x7fffffffffffffff - 1, 0x20000000000001, 16777217};
  for (int m = 0; m < 4; m++) {
    fesetround(modes[m]);
    sum = 0;
    for (unsigned i = 0; i < sizeof a / sizeof a[0]; i++) {
      volatile long x = a[i];
      feclearexcept(FE_ALL_EXCEPT);
      CONVERT(float, "float of");
      CONVERT(double, "double of");
    }
    for (int i = -11; i < 12; i++) {
      volatile double x = i / 4.0;
      feclearexcept(FE_ALL_EXCEPT);
      double results[] = {rint(x), nearbyint(x), (double)lrint(x), (double)llrint(x)};
      for (int k = 0; k < 4; k++)
        note("rint", modes[m], &results[k], 8);
      long double wide[] = {rintl(x), nearbyintl(x), lrintl(x)};
      for (int k = 0; k < 3; k++)
        note("rintl", modes[m], &wide[k], 10);
    }
    printf("integers %d %x: %016lx\n", __builtin_flt_rounds(), fegetround(), sum);
  }
  fesetround(FE_TONEAREST);
}

static void *other(void *unused) {
  printf("thread %x %x\n", fegetround(), fetestexcept(FE_ALL_EXCEPT));
  fesetround(FE_TOWARDZERO);
  feraiseexcept(FE_INVALID);
  return unused;
}

static void on_signal(int number) {
  (void)number;
  int mode = fegetround(), flags = fetestexcept(FE_ALL_EXCEPT);
  fesetround(FE_UPWARD);
  feraiseexcept(FE_OVERFLOW);
  printf("handler %x %x\n", mode, flags);
}

static void environments(void) {
  fenv_t env;
  volatile double three = 3, one = 1, zero = 0;
  fesetround(FE_DOWNWARD);
  feraiseexcept(FE_UNDERFLOW);
  pthread_t thread;
  pthread_create(&thread, 0, other, 0);
  pthread_join(thread, 0);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  printf("own %x %x\n", fegetround(), fetestexcept(FE_ALL_EXCEPT));
  feholdexcept(&env);
  one = one / zero;
  printf("held %x %x\n", fegetround(), fetestexcept(FE_ALL_EXCEPT));
  fesetround(FE_UPWARD);
  feupdateenv(&env);
  printf("updated %x %x\n", fegetround(), fetestexcept(FE_ALL_EXCEPT));
  fesetenv(FE_DFL_ENV);
  three = three / 7;
  printf("initial %x %x %d\n", fegetround(), fetestexcept(FE_ALL_EXCEPT), fesetround(3));
  fexcept_t saved;
  fegetexceptflag(&saved, FE_ALL_EXCEPT);
  feclearexcept(FE_ALL_EXCEPT);
  fesetexceptflag(&saved, FE_INEXACT);
  printf("saved %x\n", fetestexcept(FE_ALL_EXCEPT));
}

int main(int argc, char **argv) {
  (void)argv;
  shows_all = argc > 1;
  static const double doubles[] = {0,     -0.0, 1,       -1.5,     0x1p-1074,          -0x1.8p-1023, 0x1p-1022,
                                   1e308, 0.1,  INFINITY, -INFINITY, 0x1.fffffffffffffp1023, NAN,          -0x1p63,
                                   0x1p31, 2147483647.5, 0x1.fffffffffffffp-1023};
  static const float floats[] = {0,     -0.0f, 1,        -1.5f,     0x1p-149f,      -0x1.8p-127f, 0x1p-126f,
                                 1e38f, 0.1f,  INFINITY, -INFINITY, 0x1.fffffep127f, NAN,         0x1.fffffep-127f};
  all_double(doubles, sizeof doubles / sizeof doubles[0]);
  all_float(floats, sizeof floats / sizeof floats[0]);
  all_long();
  integers();
  environments();
  return 0;
}
