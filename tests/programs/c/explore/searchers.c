// run: --search dfs,bfs,random-state,shallowest
// paths: 32
#include <everett.h>

int main(void) {
  unsigned char bits = everett_symbolic_u8("bits");
  int count = 0;
  for (int i = 0; i < 5; i++)
    if (bits & (1u << i))
      count++;
  return count;
}
