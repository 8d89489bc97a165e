// exec:
// Files of /proc and /sys that programs read: they are there, and have the form that they have on Linux.
#include "files.h"

static char text[65536];

static long slurp(const char *path) {
  int fd = open(path, O_RDONLY);
  long got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (got < 0) printf("%s: %s\n", path, error_name(errno));
  text[got < 0 ? 0 : got] = 0;
  close(fd);
  return got;
}

// The first words of lines, and whether each line has as many numbers as the first one has names.
static void show_table(const char *path) {
  slurp(path);
  char *rest = text, *line;
  while ((line = strtok_r(rest, "\n", &rest))) {
    char *names = line, *numbers = strtok_r(rest, "\n", &rest), *first = NULL;
    int count = 0, values = 0;
    for (char *word; (word = strtok_r(names, " ", &names)); count++) first = first ? first : word;
    for (char *word; numbers && (word = strtok_r(numbers, " ", &numbers)); values++) {}
    if (strcmp(first, "Ip:") == 0 || strcmp(first, "Tcp:") == 0 || strcmp(first, "Udp:") == 0)
      printf("%s %s %d\n", path, first, count == values);
  }
}

static void show_numbers(const char *path) {
  slurp(path);
  int count = 0, only = 1;
  char *rest = text;
  for (char *word; (word = strtok_r(rest, " \t\n", &rest)); count++) only = only && strspn(word, "-,0123456789") == strlen(word);
  printf("%s: %d numbers %d\n", path, count, only);
}

int main(void) {
  const char *numbers[] = {
    "/proc/self/oom_score", "/proc/self/schedstat", "/proc/sys/fs/file-nr", "/proc/sys/fs/aio-max-nr",
    "/proc/sys/kernel/printk", "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/random/poolsize",
    "/proc/sys/kernel/perf_event_paranoid", "/proc/sys/kernel/tainted",
    "/proc/sys/net/core/optmem_max", "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem",
    "/proc/sys/net/ipv4/tcp_fin_timeout", "/proc/sys/net/ipv4/tcp_keepalive_time",
    "/proc/sys/net/ipv4/ip_default_ttl", "/proc/sys/net/ipv4/conf/all/forwarding", "/proc/sys/net/ipv6/bindv6only",
    "/proc/sys/vm/nr_hugepages", "/proc/sys/vm/dirty_ratio", "/proc/sys/vm/min_free_kbytes",
    "/sys/devices/system/cpu/cpu0/topology/core_cpus_list",
  };
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) show_numbers(numbers[i]);
  // A number for each node.
  slurp("/sys/devices/system/node/node0/distance");
  printf("%d\n", atoi(text));
  show_table("/proc/net/snmp");
  slurp("/proc/net/netstat");
  printf("%d %d\n", strncmp(text, "TcpExt: Syn", 11) == 0, strstr(text, "\nIpExt: In") != NULL);
  slurp("/proc/vmstat");
  printf("%d %d\n", strncmp(text, "nr_free_pages ", 14) == 0, strstr(text, "\npgfault ") != NULL);
  slurp("/proc/partitions");
  printf("%.28s\n", text);
  slurp("/proc/devices");
  printf("%.19s%d\n", text, strstr(text, "\nBlock devices:\n") != NULL);
  slurp("/proc/self/cpuset");
  printf("%s", text);
  slurp("/proc/self/timens_offsets");
  printf("%s", text);
  slurp("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  printf("%d\n", strchr(text, ' ') != NULL);
  long length = slurp("/proc/sys/kernel/random/uuid");
  char first[40];
  memcpy(first, text, sizeof first);
  slurp("/proc/sys/kernel/random/uuid");
  printf("%ld %d %c%c%c%c %c %d\n", length, text[36], text[8], text[13], text[18], text[23], text[14],
         memcmp(first, text, 36) != 0);
  char link[64] = "";
  TRY(readlink("/proc/self/ns/net", link, sizeof link) > 5);
  printf("%.5s\n", link);
  TRY(readlink("/proc/self/ns/pid_for_children", link, sizeof link) > 5);
  printf("%.5s\n", link);
  return 0;
}
