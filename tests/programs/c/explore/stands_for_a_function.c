// run:
// paths: 1
#include <everett.h>

// What stands between the marks takes the place of the rest.
static int peer(void) {
  everett_function_start();
  int id = everett_symbolic_i32("id");
  if (id < 0)
    everett_drop_path();
  if (id > 1)
    everett_drop_path();
  everett_return_symbolic(id);
  everett_function_end();
  return 99;
}

int main(void) {
  int id = peer();
  everett_mark_reject();
  if (id == 99)
    everett_report("the function itself");
  return id == 0 ? 3 : 4;
}
