// run:
// paths: 14
// Each value that x can have is a path: 3, 10, ..., 94.
#include <klee/klee.h>

int main(void) {
  int x = klee_range(3, 100, "x");
  klee_assume(x % 7 == 3);
  int value = klee_get_value_i32(x);
  if (klee_is_symbolic(value) || value % 7 != 3 || value < 3 || value >= 100)
    return 1;
  char room[20];
  if (!klee_is_replay() && klee_get_obj_size(room) != 20)
    return 2;
  klee_check_memory_access(room, 20);
  klee_warning("a warning");
  klee_warning_once("a warning");
  klee_print_expr("x", x);
  klee_stack_trace();
  return 0;
}
