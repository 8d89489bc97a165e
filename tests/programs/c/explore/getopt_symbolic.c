// run:
// args: --sym-args 0 1 2
// finding: user-report 12
#include <everett.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int c;
  opterr = 0;
  while ((c = getopt(argc, argv, "vx:")) != -1)
    if (c == 'v')
      everett_report("-v"); // here
  return 0;
}
