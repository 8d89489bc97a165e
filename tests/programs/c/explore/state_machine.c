// run:
// args: --sym-stdin 5
// finding: assertion 29
#include <assert.h>
#include <unistd.h>

enum state { IDLE, OPEN, AUTH, DATA, DONE };

int main(void) {
  char input[5];
  if (read(0, input, 5) != 5)
    return 1;
  enum state state = IDLE;
  for (int i = 0; i < 5; i++)
    switch (state) {
    case IDLE:
      state = input[i] == 'o' ? OPEN : IDLE;
      break;
    case OPEN:
      state = input[i] == 'a' ? AUTH : input[i] == 'c' ? IDLE : OPEN;
      break;
    case AUTH:
      state = input[i] == 'd' ? DATA : AUTH;
      break;
    case DATA:
      state = input[i] == '.' ? DONE : DATA;
      break;
    case DONE:
      assert(input[i] != '!'); // here
      break;
    }
  return state;
}
