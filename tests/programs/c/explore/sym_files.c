// run:
// args: A --sym-files 1 3
// finding: user-report 16
#include <everett.h>
#include <stdio.h>

int main(int argc, char **argv) {
  FILE *file = fopen(argv[argc - 1], "rb");
  if (!file)
    return 2;
  int a = fgetc(file), b = fgetc(file), c = fgetc(file);
  if (fgetc(file) != EOF)
    return 3;
  fclose(file);
  if (a == 'G' && b == 'I' && c == 'F')
    everett_report("GIF"); // here
  return 0;
}
