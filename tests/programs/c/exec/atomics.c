// exec:
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

static _Atomic int number = 5;
static atomic_long wide = 1L << 40;
static _Atomic unsigned char byte = 250;
static atomic_flag flag = ATOMIC_FLAG_INIT;
struct pair { long a, b; };

int main(void) {
  printf("%d ", atomic_fetch_add(&number, 3));
  printf("%d ", atomic_fetch_sub(&number, 1));
  printf("%d ", atomic_fetch_or(&number, 8));
  printf("%d ", atomic_fetch_and(&number, 12));
  printf("%d ", atomic_fetch_xor(&number, 5));
  printf("%d\n", atomic_load_explicit(&number, memory_order_acquire));
  int expected = 1;
  bool done = atomic_compare_exchange_strong(&number, &expected, 100);
  printf("%d %d\n", done, expected);
  done = atomic_compare_exchange_strong(&number, &expected, 100);
  printf("%d %d\n", done, number);
  printf("%ld\n", atomic_exchange(&wide, 7) + wide);
  byte += 10;
  byte++;
  printf("%d\n", byte);
  printf("%d ", atomic_flag_test_and_set(&flag));
  printf("%d\n", atomic_flag_test_and_set(&flag));
  int plain = 3;
  printf("%d %d %d\n", __sync_fetch_and_add(&plain, 4), __sync_val_compare_and_swap(&plain, 7, 9), plain);
  printf("%d\n", __atomic_nand_fetch(&plain, 5, __ATOMIC_SEQ_CST));
  atomic_thread_fence(memory_order_seq_cst);
  int low = -5;
  printf("%d %d\n", __atomic_fetch_min(&plain, low, __ATOMIC_RELAXED), plain);
  return 0;
}
