// exec:
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

int main(void) {
  int count = 0;
  for (char **variable = environ; variable && *variable; variable++)
    count++;
  printf("%d %d\n", count, getenv("HOME") == NULL);
  setenv("FIRST", "1", 1);
  setenv("FIRST", "2", 0);
  char own[] = "SECOND=two";
  putenv(own);
  printf("%s %s\n", getenv("FIRST"), getenv("SECOND"));
  own[7] = 'T';
  printf("%s %s\n", getenv("SECOND"), secure_getenv("FIRST"));
  unsetenv("FIRST");
  printf("%d\n", getenv("FIRST") == NULL);
  clearenv();
  printf("%d\n", getenv("SECOND") == NULL);
  return 0;
}
