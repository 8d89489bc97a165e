// run:
// finding: user-report 12
#include <ctype.h>
#include <everett.h>
#include <strings.h>

int main(void) {
  char word[4];
  everett_make_symbolic(word, sizeof word, "word");
  word[3] = 0;
  if (strcasecmp(word, "yes") == 0 && islower((unsigned char)word[0]) && isupper((unsigned char)word[1]))
    everett_report("yES or yEs"); // here
  return 0;
}
