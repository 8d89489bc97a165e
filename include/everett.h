/* everett.h: how a program under test speaks to Everett.
 *
 * Every program that `everett cc`, `everett c++` or `everett rustc` builds can call these
 * functions. When Everett explores the program they do what is said below. When the program runs
 * natively they take their values from the test file that the environment variable EVERETT_TEST
 * names (a .ktest file), in the order of the calls; without one all values are zero.
 *
 * Names are for people and for test files: a name may be used more than once. */

#ifndef EVERETT_H
#define EVERETT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the SIZE bytes at ADDRESS symbolic: they stand for all values at once. ADDRESS must be
 * the start of an object, or lie in one that has SIZE bytes from there on. */
void everett_make_symbolic(void *address, size_t size, const char *name);

/* Goes on only where CONDITION is not zero. A path on which it must be zero ends silently. */
void everett_assume(uint64_t condition);

/* A symbolic number of at least LOW and less than HIGH. */
int64_t everett_range(int64_t low, int64_t high, const char *name);

/* A choice among COUNT alternatives, 0 to COUNT - 1. Each becomes a path of its own. */
uint32_t everett_choose(uint32_t count, const char *name);

/* Shows SIZE bytes at ADDRESS to checks outside of the program (invariants over several hosts),
 * as the value of KEY in the program's state STATE. */
void everett_expose(const char *state, const char *key, const void *address, size_t size);

/* 1 if VALUE is not one value but depends on symbolic input, else 0. Natively always 0. */
int everett_is_symbolic(uint64_t value);

/* Reports a finding with MESSAGE and ends the path. */
#ifdef __cplusplus
[[noreturn]]
#else
__attribute__((noreturn))
#endif
void everett_report(const char *message);

/* Ends the path without a finding and without a test case. Natively: exits with STATUS. */
#ifdef __cplusplus
[[noreturn]]
#else
__attribute__((noreturn))
#endif
void everett_silent_exit(int status);

/* Where a test case has a free choice, prefers values for which CONDITION is not zero. */
void everett_prefer(uint64_t condition);

/* Reports a finding where CONDITION can be zero; goes on where it is not. */
void everett_assert(uint64_t condition);

/* The host of the program. Natively these do nothing. */

/* A stretch of the program in which calls may fail: one system call on a path, or, with --faults N, as many calls as
 * the run says, allocations too. With --fault-regions, failures are injected in such stretches only. Stretches may be
 * nested. */
void everett_faults_enable(void);
void everett_faults_disable(void);

/* Calls on this descriptor may fail (1) or not (0), whatever the stretch. */
void everett_inject(int fd, int on);

/* What is read from this descriptor arrives in at most PIECES pieces, in all ways; 0: whole. */
void everett_fragment(int fd, int pieces);

/* The next SIZE bytes that are read from this descriptor are symbolic, whatever they are. */
void everett_symbolic_source(int fd, size_t size);

/* malloc and mmap fail where the process would have more than BYTES. */
void everett_set_max_heap(size_t bytes);

/* Which thread runs next, from here on: EVERETT_BOUNDED takes the most preemptions on a path as NUMBER,
 * EVERETT_RANDOM a seed. */
enum { EVERETT_ROUND_ROBIN = 0, EVERETT_EXHAUSTIVE = 1, EVERETT_BOUNDED = 2, EVERETT_RANDOM = 3 };
void everett_set_scheduler(int kind, uint64_t number);

/* Messages that a server accepts and no client sends (`everett trojans`). */

/* This path accepts the message (with accept = "mark"), or rejects it. */
static inline void everett_mark_accept(void) { everett_expose("trojans", "accept", "", 1); }
static inline void everett_mark_reject(void) { everett_expose("trojans", "reject", "", 1); }
/* The message is sent when a host has got here (with state = { mark = "NAME" }). */
static inline void everett_mark_state(const char *name) { everett_expose("trojans at", name, "", 1); }

/* Stands for a function, at its beginning, where only what it may return matters, like a checksum or a signature:
 *
 *     everett_function_start();
 *     int id = everett_symbolic_i32("id");
 *     if (id < 0 || id > 10) everett_drop_path();
 *     everett_return_symbolic(id);
 *     everett_function_end();
 *
 * The code behind it is not executed, natively neither. */
#define everett_function_start() if (1) {
#define everett_drop_path() everett_assume(0)
#define everett_return_symbolic(value) return (value)
#define everett_function_end() } ((void)0)

/* Symbolic numbers. */
static inline int8_t everett_symbolic_i8(const char *name) {
  int8_t value = 0;
  everett_make_symbolic(&value, sizeof value, name);
  return value;
}
static inline uint8_t everett_symbolic_u8(const char *name) {
  uint8_t value = 0;
  everett_make_symbolic(&value, sizeof value, name);
  return value;
}
static inline int32_t everett_symbolic_i32(const char *name) {
  int32_t value = 0;
  everett_make_symbolic(&value, sizeof value, name);
  return value;
}
static inline uint32_t everett_symbolic_u32(const char *name) {
  uint32_t value = 0;
  everett_make_symbolic(&value, sizeof value, name);
  return value;
}
static inline int64_t everett_symbolic_i64(const char *name) {
  int64_t value = 0;
  everett_make_symbolic(&value, sizeof value, name);
  return value;
}
static inline uint64_t everett_symbolic_u64(const char *name) {
  uint64_t value = 0;
  everett_make_symbolic(&value, sizeof value, name);
  return value;
}

#ifdef __cplusplus
}
#endif

#endif
