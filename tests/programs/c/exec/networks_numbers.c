// exec:
#include <arpa/inet.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  struct in_addr four;
  struct in6_addr six;
  char text[64];
  printf("%d %x\n", inet_pton(AF_INET, "192.168.1.20", &four), ntohl(four.s_addr));
  printf("%s\n", inet_ntop(AF_INET, &four, text, sizeof text));
  printf("%d\n", inet_pton(AF_INET6, "2001:db8::ff00:42:8329", &six));
  printf("%s\n", inet_ntop(AF_INET6, &six, text, sizeof text));
  printf("%d %x %x\n", inet_pton(AF_INET, "300.1.1.1", &four), htons(0x1234), htonl(0x12345678));
  char path[] = "/usr/lib/file.so", copy[] = "/usr/lib/file.so";
  printf("%s %s\n", basename(path), dirname(copy));
  return 0;
}
