// exec:
#include "memory_cases.h"

int main(void) {
  // Room is reserved, then used at addresses that are asked for.
  char *room = mmap(0, 64 * PAGE, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
  SHOW(munmap(room, 64 * PAGE));
  char *first = mmap(room, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
  char *second = mmap(room + 2 * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
  printf("%d %d\n", first == room, second == room + 2 * PAGE);
  memset(first, 'a', 4 * PAGE);
  printf("%c %c\n", first[2 * PAGE - 1], first[2 * PAGE]);
  // One call takes away what several made.
  SHOW(munmap(first + PAGE, 2 * PAGE));
  printf("%c %c\n", room[0], room[3 * PAGE]);

  TELL(mmap(room, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
  TELL(mmap(room + PAGE, 2 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
  TELL(mmap(room + PAGE, 2 * PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0));
  printf("%d\n", room[PAGE]);

  // A hint is followed where there is room.
  char *hint = room + 32 * PAGE;
  char *got = mmap(hint, PAGE, RW, ANON, -1, 0);
  printf("free hint %d\n", got == hint);
  got[0] = 'h';
  char *other = mmap(hint, PAGE, RW, ANON, -1, 0);
  printf("taken hint %d %c\n", other == hint, got[0]);
  other = mmap(hint + PAGE + 7, PAGE, RW, ANON, -1, 0);
  printf("rounded hint %d\n", other == hint + PAGE);

  // Low addresses, and high ones.
  char *low = mmap((void *)0x10000000, PAGE, RW, ANON | MAP_FIXED, -1, 0);
  printf("low %d\n", low == (void *)0x10000000);
  strcpy(low, "low");
  char *near = mmap((void *)0x10001000, PAGE, RW, ANON, -1, 0);
  printf("near %d %s\n", near == (void *)0x10001000, low);
  char *high = mmap((void *)0x7e0000000000, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
  printf("high %d\n", high == (void *)0x7e0000000000);
  high[0] = 1;
  SHOW(munmap(high, PAGE));
  SHOW(munmap(low, 2 * PAGE));
  TELL(mmap((void *)0x7ffffffff000, PAGE, RW, ANON | MAP_FIXED, -1, 0));
  return 0;
}
