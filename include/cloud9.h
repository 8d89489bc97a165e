/* cloud9.h: the testing interface of Cloud9, under its names, for programs that were written for it.
 * everett.h says what each does. */

#ifndef CLOUD9_H
#define CLOUD9_H

#include <everett.h>

/* Requests of ioctl on a descriptor; the argument has the directions, RD, WR or both, or is 0 for none. */
#define SIO_SYMBOLIC 0x45560001     /* RD: what is read is symbolic */
#define SIO_PKT_FRAGMENT 0x45560002 /* RD: what is read arrives in pieces, in all ways */
#define SIO_FAULT_INJ 0x45560003    /* RD, WR: calls that read, that write may fail; others for any of them */

/* The first two refuse WR with EINVAL: mark the descriptor that reads. */
#define RD 1
#define WR 2

/* Schedulers. */
#define CLOUD9_ROUND_ROBIN EVERETT_ROUND_ROBIN
#define CLOUD9_EXHAUSTIVE EVERETT_EXHAUSTIVE
#define CLOUD9_BOUNDED EVERETT_BOUNDED

/* Cloud9 passes an array alone; its size is known to the compiler. */
#define cloud9_make_symbolic(array) everett_make_symbolic((array), sizeof(array), #array)

static inline void cloud9_fi_enable(void) { everett_faults_enable(); }
static inline void cloud9_fi_disable(void) { everett_faults_disable(); }
static inline void cloud9_set_max_heap(size_t bytes) { everett_set_max_heap(bytes); }
static inline void cloud9_set_scheduler(int kind, uint64_t number) {
  everett_set_scheduler(kind, number);
}

#endif
