// build: -O2
// exec:
#include <emmintrin.h>
#include <stdio.h>

int main(void) {
  volatile int one = 1;
  __m128i a = _mm_set_epi32(4, 3, 2, one), b = _mm_set1_epi32(-7);
  int out[4];
  _mm_storeu_si128((__m128i *)out, _mm_add_epi32(a, b));
  printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
  __m128i bytes = _mm_loadu_si128((const __m128i *)"0123456789abcdef");
  printf("%x\n", _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)('0' + 4 * one)))));
  printf("%x\n", _mm_movemask_epi8(_mm_cmpgt_epi8(bytes, _mm_set1_epi8('9'))));
  _mm_storeu_si128((__m128i *)out, _mm_packs_epi32(a, b));
  printf("%x %x %x %x\n", out[0], out[1], out[2], out[3]);
  _mm_storeu_si128((__m128i *)out, _mm_madd_epi16(a, b));
  printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
  _mm_storeu_si128((__m128i *)out, _mm_sad_epu8(bytes, a));
  printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
  _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi32(a, 0x1b));
  printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
  _mm_storeu_si128((__m128i *)out, _mm_srai_epi32(_mm_slli_epi32(b, 28), 28));
  printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
  _mm_storeu_si128((__m128i *)out, _mm_subs_epu8(bytes, _mm_set1_epi8(50)));
  printf("%x %x %x %x\n", out[0], out[1], out[2], out[3]);
  _mm_storeu_si128((__m128i *)out, _mm_mul_epu32(a, b));
  printf("%x %x %x %x\n", out[0], out[1], out[2], out[3]);
  __m128d d = _mm_sqrt_pd(_mm_set_pd(2.0, 16.0 * one));
  double doubles[2];
  _mm_storeu_pd(doubles, _mm_max_pd(d, _mm_set1_pd(2)));
  printf("%a %a\n", doubles[0], doubles[1]);
  printf("%d %d\n", _mm_cvtsd_si32(d), _mm_cvttsd_si32(_mm_set_sd(-2.9 * one)));
  __m128 f = _mm_set_ps(1.5f, -2.5f, 3.5f, (float)one);
  printf("%x\n", _mm_movemask_ps(f));
  _mm_storeu_si128((__m128i *)out, _mm_cvtps_epi32(f));
  printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
  return 0;
}
