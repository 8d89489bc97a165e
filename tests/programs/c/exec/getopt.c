// exec: -a -b value -ccombined file1 -- -notoption
// exec: --verbose --level=3 rest
// exec: -z
// exec:
#include <getopt.h>
#include <stdio.h>

int main(int argc, char **argv) {
  static struct option options[] = {{"verbose", no_argument, 0, 'v'}, {"level", required_argument, 0, 'l'}, {0, 0, 0, 0}};
  int c;
  while ((c = getopt_long(argc, argv, "ab:c::v", options, NULL)) != -1)
    printf("%c %s\n", c, optarg ? optarg : "none");
  for (int i = optind; i < argc; i++)
    printf("rest %s\n", argv[i]);
  return argc;
}
