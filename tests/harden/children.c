// A server whose children handle the requests: 64 for each line of input.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int table[16];
__attribute__((noinline)) int handle(const char *line, int number) {
  for (int at = 0; line[at]; at++) table[at & 15] += number;
  return table[number & 15];
}
int main(void) {
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    pid_t child = fork();
    if (child == 0) {
      int sum = 0;
      for (int number = 0; number < 64; number++) sum += handle(line, number);
      _exit(sum == 0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%d\n", status);
    fflush(stdout);
  }
  return 0;
}
