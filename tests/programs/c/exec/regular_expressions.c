// exec:
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>

static void try(const char *pattern, const char *text, int flags) {
  regex_t regex;
  regmatch_t parts[4];
  int error = regcomp(&regex, pattern, flags);
  if (error) {
    char message[64];
    regerror(error, &regex, message, sizeof message);
    printf("%s: %s\n", pattern, message);
    return;
  }
  int found = regexec(&regex, text, 4, parts, 0);
  printf("%s %s: %d", pattern, text, found);
  for (int i = 0; found == 0 && i < 4; i++)
    printf(" [%d,%d)", (int)parts[i].rm_so, (int)parts[i].rm_eo);
  puts("");
  regfree(&regex);
}

int main(void) {
  try("^([a-z]+)=([0-9]*)$", "key=123", REG_EXTENDED);
  try("a.c", "xxabcxx", 0);
  try("(ab|cd)+e?", "zabcdabe", REG_EXTENDED);
  try("HELLO", "say hello", REG_ICASE);
  try("(unclosed", "x", REG_EXTENDED);
  try("[[:digit:]]{2,3}", "a1b12345", REG_EXTENDED);
  printf("%d %d %d\n", fnmatch("*.c", "file.c", 0), fnmatch("[a-c]?", "bz", 0), fnmatch("*.h", "file.c", 0) != 0);
  return 0;
}
