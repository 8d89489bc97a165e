// run:
// args: --sym-arg 2
// complete: yes
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  printf("<%s>\n", argv[argc - 1]);
  if (argv[1][0] == '7')
    printf("%d\n", atoi(argv[1]));
  return 0;
}
