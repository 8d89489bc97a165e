/* klee/klee.h: the interface of KLEE, so that harnesses written for KLEE compile unchanged.
 *
 * The functions do what KLEE's do; where they differ from those of everett.h it is said here. */

#ifndef KLEE_H
#define KLEE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds an accessible object of NBYTES at the fixed address ADDR. It has bounds as every object. Natively its pages are
 * mapped, which the kernel does not allow below 64 KiB. */
void klee_define_fixed_object(void *addr, size_t nbytes);

/* Makes the NBYTES at ADDR symbolic. */
void klee_make_symbolic(void *addr, size_t nbytes, const char *name);

/* A symbolic int in [begin, end). */
int klee_range(int begin, int end, const char *name);

/* A symbolic int. */
int klee_int(const char *name);

/* Ends the path without a finding and without a test case. What was written through stdio is not lost. */
__attribute__((noreturn)) void klee_silent_exit(int status);

/* Ends the path with a finding. */
__attribute__((noreturn)) void klee_abort(void);

/* Ends the path with a finding of the kind SUFFIX at FILE:LINE. */
__attribute__((noreturn)) void klee_report_error(const char *file, int line, const char *message,
                                                 const char *suffix);

/* The size of the object that PTR points to the start of. */
size_t klee_get_obj_size(void *ptr);

/* Prints MSG and the expression that follows it. */
void klee_print_expr(const char *msg, ...);

/* A value in [0, n); each is a path of its own where it matters. */
uintptr_t klee_choose(uintptr_t n);

/* Whether N depends on symbolic input. */
unsigned klee_is_symbolic(uintptr_t n);

/* Whether the program runs natively on a test case. */
unsigned klee_is_replay(void);

/* Goes on only where CONDITION is not zero. */
void klee_assume(uintptr_t condition);

/* Messages on standard error; the second one shows the same message only once. */
void klee_warning(const char *message);
void klee_warning_once(const char *message);

/* Where a test case has a free choice, prefers values for which CONDITION is not zero. */
void klee_prefer_cex(void *object, uintptr_t condition);
void klee_posix_prefer_cex(void *object, uintptr_t condition);

/* Marks an object as one that outlives the run. */
void klee_mark_global(void *object);

/* One of the values that the expression can have under the path condition. */
float klee_get_valuef(float expr);
double klee_get_valued(double expr);
long klee_get_valuel(long expr);
long long klee_get_valuell(long long expr);
int32_t klee_get_value_i32(int32_t expr);
int64_t klee_get_value_i64(int64_t expr);

/* Reports a finding unless SIZE bytes at ADDRESS can be accessed. */
void klee_check_memory_access(const void *address, size_t size);

/* Switches forking on data on or off for this path. While it is off, a branch or address that depends on symbolic data
 * takes one of the sides that it can take; the others are not explored, and the run counts as incomplete. Schedules and
 * injected faults are explored all the same. */
void klee_set_forking(unsigned enable);

/* Calls of FN_NAME go to NEW_FN_NAME from now on. */
void klee_alias_function(const char *fn_name, const char *new_fn_name);

/* Prints the stack. */
void klee_stack_trace(void);

/* Prints the range of values of ARG. */
void klee_print_range(const char *name, int arg);

/* Paths between these two calls are merged where they can be. */
void klee_open_merge(void);
void klee_close_merge(void);

/* The errno that the program has outside. */
int klee_get_errno(void);

/* As assert, but not switched off by NDEBUG. */
#define klee_assert(expr) \
  ((expr) ? (void)(0) : __assert_fail(#expr, __FILE__, __LINE__, __func__))

#ifdef __cplusplus
}
#endif

#endif
