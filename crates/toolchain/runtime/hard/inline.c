// The checks of hardened builds that stand in the program's own code. This file is compiled to bitcode; each function
// is inlined where a kept check calls it, so a check that passes costs a load, a comparison and a branch.

#include <stddef.h>
#include <stdint.h>

#define SHADOW_START 0x7fff8000ul
#define CHECK __attribute__((always_inline)) void

__attribute__((noreturn, cold)) void everett_hard_bad(uint32_t site, uint64_t address, uint64_t size, int is_write);
__attribute__((noreturn, cold)) void everett_hard_stop(uint32_t site);
extern uint64_t *everett_hard_counters;

// One byte of the shadow stands for eight bytes of memory: 0 all may be used, 1 to 7 so many of them, negative none.
static inline __attribute__((always_inline)) int is_bad(uint64_t address, unsigned size) {
  signed char value = *(signed char *)((address >> 3) + SHADOW_START);
  if (__builtin_expect(value == 0, 1)) return 0;
  return size >= 8 || (signed char)((address & 7) + size - 1) >= value;
}

#define SIZED(n)                                                                                     \
  CHECK everett_hard_load##n(uint32_t site, uint64_t address) {                                      \
    if (__builtin_expect(is_bad(address, n), 0)) everett_hard_bad(site, address, n, 0);              \
  }                                                                                                  \
  CHECK everett_hard_store##n(uint32_t site, uint64_t address) {                                     \
    if (__builtin_expect(is_bad(address, n), 0)) everett_hard_bad(site, address, n, 1);              \
  }
SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)

// Aligned accesses of 16 bytes have two bytes of the shadow.
CHECK everett_hard_load16(uint32_t site, uint64_t address) {
  if (__builtin_expect(*(uint16_t *)((address >> 3) + SHADOW_START) != 0, 0)) everett_hard_bad(site, address, 16, 0);
}
CHECK everett_hard_store16(uint32_t site, uint64_t address) {
  if (__builtin_expect(*(uint16_t *)((address >> 3) + SHADOW_START) != 0, 0)) everett_hard_bad(site, address, 16, 1);
}

// Of other sizes and alignments the first and the last byte are asked for: gaps are wider than any such access.
CHECK everett_hard_loadN(uint32_t site, uint64_t address, uint64_t size) {
  if (__builtin_expect(is_bad(address, 1) || is_bad(address + size - 1, 1), 0))
    everett_hard_bad(site, address, size, 0);
}
CHECK everett_hard_storeN(uint32_t site, uint64_t address, uint64_t size) {
  if (__builtin_expect(is_bad(address, 1) || is_bad(address + size - 1, 1), 0))
    everett_hard_bad(site, address, size, 1);
}

#define SIGNED(name, type, operation)                                                                \
  CHECK everett_hard_##name(uint32_t site, type a, type b) {                                         \
    type result;                                                                                     \
    if (__builtin_expect(operation(a, b, &result), 0)) everett_hard_stop(site);                      \
  }
SIGNED(add32, int32_t, __builtin_add_overflow)
SIGNED(sub32, int32_t, __builtin_sub_overflow)
SIGNED(mul32, int32_t, __builtin_mul_overflow)
SIGNED(add64, int64_t, __builtin_add_overflow)
SIGNED(sub64, int64_t, __builtin_sub_overflow)
SIGNED(mul64, int64_t, __builtin_mul_overflow)

// Copies without their check.
__attribute__((always_inline)) void *everett_plain_memcpy(void *to, const void *from, size_t size) {
  return __builtin_memcpy(to, from, size);
}
__attribute__((always_inline)) void *everett_plain_memmove(void *to, const void *from, size_t size) {
  return __builtin_memmove(to, from, size);
}
__attribute__((always_inline)) void *everett_plain_memset(void *to, int value, size_t size) {
  return __builtin_memset(to, value, size);
}

// Copies with it. Whole ranges are asked for by a function: a copy costs more than a call.
void everett_hard_range(uint32_t site, const void *start, size_t size, int is_write);
__attribute__((always_inline)) void *everett_hard_memcpy(uint32_t site, void *to, const void *from, size_t size) {
  everett_hard_range(site, from, size, 0);
  everett_hard_range(site, to, size, 1);
  return __builtin_memcpy(to, from, size);
}
__attribute__((always_inline)) void *everett_hard_memmove(uint32_t site, void *to, const void *from, size_t size) {
  everett_hard_range(site, from, size, 0);
  everett_hard_range(site, to, size, 1);
  return __builtin_memmove(to, from, size);
}
__attribute__((always_inline)) void *everett_hard_memset(uint32_t site, void *to, int value, size_t size) {
  everett_hard_range(site, to, size, 1);
  return __builtin_memset(to, value, size);
}

// Profiled builds count. Threads and processes share the counters.
CHECK everett_hard_count(uint32_t site) { __atomic_fetch_add(&everett_hard_counters[site], 1, __ATOMIC_RELAXED); }
