// What __builtin_cpu_supports and __builtin_cpu_is read: the properties of the processor, as
// `cpuid` tells them, in the layout of the compiler's runtime library (libgcc's and LLVM's).
//
// Features whose numbers are not listed here are said to be missing, so that programs take a path
// without them.

#include <cpuid.h>

enum {
  CMOV, MMX, POPCNT, SSE, SSE2, SSE3, SSSE3, SSE4_1, SSE4_2, AVX, AVX2,
  FMA = 14, AVX512F, BMI, BMI2, AES, PCLMUL, AVX512VL, AVX512BW, AVX512DQ, AVX512CD,
  ADX = 40, CMPXCHG16B = 46, CMPXCHG8B = 47, F16C = 49, FXSAVE = 51, LAHF_LM = 54, LM = 55,
  LZCNT = 57, MOVBE = 58, BASELINE = 95, V2 = 96, V3 = 97,
};

enum { VENDOR_INTEL = 1, VENDOR_AMD = 2, VENDOR_OTHER = 3 };

struct {
  unsigned vendor, type, subtype, features;
} __cpu_model;
unsigned __cpu_features2[3];

static void set(int feature, int is_there) {
  if (!is_there)
    return;
  if (feature < 32)
    __cpu_model.features |= 1u << feature;
  else
    __cpu_features2[feature / 32 - 1] |= 1u << feature % 32;
}

static int has(int feature) {
  unsigned word = feature < 32 ? __cpu_model.features : __cpu_features2[feature / 32 - 1];
  return word >> feature % 32 & 1;
}

// Whether the kernel saves these registers.
static int saves(unsigned c, unsigned registers) {
  unsigned low, high;
  if (!(c & bit_OSXSAVE))
    return 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & registers) == registers;
}

static void set_levels(void) {
  set(BASELINE, has(CMOV) && has(CMPXCHG8B) && has(FXSAVE) && has(MMX) && has(SSE2) && has(LM));
  set(V2, has(BASELINE) && has(CMPXCHG16B) && has(LAHF_LM) && has(POPCNT) && has(SSE3) &&
              has(SSSE3) && has(SSE4_1) && has(SSE4_2));
  set(V3, has(V2) && has(AVX) && has(AVX2) && has(BMI) && has(BMI2) && has(F16C) && has(FMA) &&
              has(LZCNT) && has(MOVBE));
}

static void set_first(unsigned c, unsigned d, int avx) {
  set(CMOV, d & bit_CMOV), set(MMX, d & bit_MMX), set(SSE, d & bit_SSE), set(SSE2, d & bit_SSE2);
  set(CMPXCHG8B, d & bit_CMPXCHG8B), set(FXSAVE, d & bit_FXSAVE);
  set(POPCNT, c & bit_POPCNT), set(SSE3, c & bit_SSE3), set(SSSE3, c & bit_SSSE3);
  set(SSE4_1, c & bit_SSE41), set(SSE4_2, c & bit_SSE42), set(AES, c & bit_AESNI);
  set(PCLMUL, c & bit_PCLMULQDQ), set(CMPXCHG16B, c & bit_CMPXCHG16B), set(MOVBE, c & bit_MOVBE);
  set(AVX, avx && c & bit_AVX), set(FMA, avx && c & bit_FMA), set(F16C, avx && c & bit_F16C);
}

static void set_seventh(unsigned b, int avx, int avx512) {
  set(BMI, b & bit_BMI), set(BMI2, b & bit_BMI2), set(ADX, b & bit_ADX);
  set(AVX2, avx && b & bit_AVX2);
  set(AVX512F, avx512 && b & bit_AVX512F), set(AVX512VL, avx512 && b & bit_AVX512VL);
  set(AVX512BW, avx512 && b & bit_AVX512BW), set(AVX512DQ, avx512 && b & bit_AVX512DQ);
  set(AVX512CD, avx512 && b & bit_AVX512CD);
}

__attribute__((constructor(101))) int __cpu_indicator_init(void) {
  unsigned a, b, c, d, most;
  if (__cpu_model.vendor)
    return 0;
  __cpuid(0, most, b, c, d);
  __cpu_model.vendor = b == signature_INTEL_ebx ? VENDOR_INTEL
                       : b == signature_AMD_ebx ? VENDOR_AMD
                                                : VENDOR_OTHER;
  __cpuid(1, a, b, c, d);
  int avx = saves(c, 0x6), avx512 = saves(c, 0xe6);
  set_first(c, d, avx);
  if (most >= 7) {
    __cpuid_count(7, 0, a, b, c, d);
    set_seventh(b, avx, avx512);
  }
  __cpuid(0x80000000, most, b, c, d);
  if (most >= 0x80000001) {
    __cpuid(0x80000001, a, b, c, d);
    set(LAHF_LM, c & bit_LAHF_LM), set(LZCNT, c & bit_LZCNT), set(LM, d & bit_LM);
  }
  set_levels();
  return 0;
}
