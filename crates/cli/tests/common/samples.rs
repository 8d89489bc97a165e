//! Small programs that several tests explore.

/// A program with branches, a choice, output, exit codes and a finding that many paths reach.
pub const FORKS: &str = r#"
#include <everett.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  unsigned char b[4];
  unsigned n = 0;
  everett_make_symbolic(b, sizeof b, "b");
  for (int i = 0; i < 4; i++) {
    if (b[i] > 'a' + i) n |= 1u << i;
    else if (b[i] == i) n += 3;
  }
  unsigned c = everett_choose(3, "choice");
  if (n == 15) {
    char *p = malloc(4);
    p[c + 4] = 1;
    return p[0];
  }
  printf("%u %u\n", n, c);
  return (int)(n % 7 + c);
}
"#;

/// The number of its paths.
pub const FORKS_PATHS: u64 = 3 * 3 * 3 * 3 * 3;

/// Reads standard input and an argument.
pub const WORDS: &str = r#"
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  char line[8] = {0};
  size_t count = fread(line, 1, 4, stdin);
  int digits = 0;
  for (size_t i = 0; i < count; i++) digits += line[i] >= '0' && line[i] <= '9';
  if (argc > 1 && strcmp(argv[1], "-v") == 0) puts("verbose");
  switch (digits) {
  case 0: return 10;
  case 4: return 11;
  default: return line[0] == '7' ? 12 : 13;
  }
}
"#;

/// Runs forever without solver queries.
pub const SPIN: &str = "int main(void) { for (volatile unsigned i = 0;; i++); }\n";

/// Forks forever.
pub const FORK_FOR_EVER: &str = r#"
#include <everett.h>
int main(void) {
  for (unsigned n = 0;;) {
    unsigned x;
    everett_make_symbolic(&x, sizeof x, "x");
    if (x * 3 > 700 + n) n++;
  }
}
"#;

/// A program with many states, each with its own memory.
pub const LARGE_STATES: &str = r#"
#include <everett.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  unsigned char b[9], *block = malloc(1 << 17);
  unsigned n = 0;
  everett_make_symbolic(b, sizeof b, "b");
  for (int i = 0; i < 9; i++) {
    if (b[i] > 40) n |= 1u << i;
    memset(block, (int)n, 1 << 17);
  }
  return block[n] & 0x7f;
}
"#;

/// A program with so many paths that its exploration never ends.
pub const ENDLESS: &str = r#"
#include <unistd.h>
int main(void) {
  unsigned char bytes[64];
  int count = 0;
  read(0, bytes, sizeof bytes);
  for (int at = 0; at < 64; at++)
    if (bytes[at] & 1)
      count++;
  return count & 1;
}
"#;
