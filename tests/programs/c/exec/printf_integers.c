// exec:
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int main(void) {
  printf("[%d][%5d][%-5d][%05d][%+d][% d]\n", 42, 42, 42, 42, 42, 42);
  printf("[%d][%ld][%lld]\n", INT_MIN, LONG_MIN, LLONG_MAX);
  printf("[%hhd][%hd][%hhu][%hu]\n", 300, 70000, 300, 70000);
  printf("[%x][%X][%#x][%#o][%o][%#010x]\n", 255, 255, 255, 8, 8, 255);
  printf("[%zu][%td][%jd]\n", sizeof(int), (ptrdiff_t)-3, (intmax_t)-7);
  printf("[%.3d][%8.3d][%.0d]\n", 5, 5, 0);
  printf("[%*d][%-*d][%.*d]\n", 6, 7, 6, 7, 4, 7);
  printf("[%u][%lu]\n", UINT_MAX, ULONG_MAX);
  printf("[%" PRId64 "][%" PRIx32 "]\n", INT64_C(-5), UINT32_C(0xbeef));
  printf("[%c][%3c][%-3c]%%\n", 'x', 'y', 'z');
  printf("[%s][%10s][%-10s][%.2s][%10.3s]\n", "text", "text", "text", "text", "text");
  printf("[%p][%p]\n", (void *)0x1234, (void *)0);
  int written = 0;
  printf("abc%ndef\n", &written);
  printf("%d\n", written);
  printf("%2$s %1$s\n", "world", "hello");
  printf("%d\n", printf("count\n"));
  char room[8];
  int wanted = snprintf(room, sizeof room, "%s-%d", "overlong", 12);
  printf("%s %d\n", room, wanted);
  return 0;
}
