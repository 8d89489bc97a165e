// Dynamic activation: which requests run with all checks. An entry point of the program asks here, once for each
// request; functions go by the thread's flag. The threshold moves with the measured overhead and with the time that
// requests take, so that both stay within what was asked for.

__thread int everett_hard_level;

// The program's build says both, in thousandths.
extern const uint32_t everett_hard_budget __attribute__((weak));
extern const uint32_t everett_hard_slowdown __attribute__((weak));

// The program may say how popular a request is, such as by `everett_popularity` of a survey. Popular ones go unchecked
// first. Without it all requests are alike, and one of so many is checked.
unsigned long everett_decide(const char *entry, const long *arguments) __attribute__((weak));

enum { UPDATE = 64, MOST_PERIOD = 1 << 16, MOST_LATE = 50 };
enum { SYS_SOCKET = 41, SYS_SENDTO = 44, SYS_RECVFROM = 45, SYS_BIND = 49, SYS_CLOCK_GETTIME = 228 };

static struct {
  uint64_t budget;    // In thousandths.
  uint64_t threshold; // The most popular request that is checked.
  uint64_t period;    // One of so many is checked.
  uint64_t requests, checked;
  uint64_t checked_time, plain_time;
  uint64_t overhead;            // In thousandths.
  uint64_t latency;             // Microseconds that a request may take; 0 for any.
  uint64_t latest;              // The same in ticks of the processor; 0 until it is known how long these are.
  uint64_t ended, late;         // Requests, and those that took longer.
  uint64_t late_share;          // In thousandths.
  uint64_t from_ticks, from_ns; // When the program started.
  int control;
} monitor = {.threshold = ~0ul >> 1, .period = 1, .control = -1};

static __thread struct {
  const long *frame; // Of the outermost entry point.
  uint64_t start;
} request;

static uint64_t number_of(const char *digits) {
  uint64_t number = 0;
  while (*digits >= '0' && *digits <= '9') number = number * 10 + (uint64_t)(*digits++ - '0');
  return number;
}

// The rest of a text that begins with a word, or null.
static const char *after(const char *text, const char *word) {
  while (*word && *text == *word) text++, word++;
  return *word ? (const char *)0 : text;
}

static uint64_t monotonic_ns(void) {
  long now[2] = {0};
  system_call(SYS_CLOCK_GETTIME, 1, (long)now, 0, 0, 0, 0);
  return (uint64_t)now[0] * 1000000000 + (uint64_t)now[1];
}

// What was said by the control socket: `budget PERCENT`, `latency MICROSECONDS`. Every message is answered with figures.
static void hear(void) {
  enum { DONT_WAIT = 0x40 };
  char message[64], address[128];
  unsigned length = sizeof address;
  long size = system_call(SYS_RECVFROM, monitor.control, (long)message, sizeof message - 1, DONT_WAIT, (long)address,
                          (long)&length);
  if (size < 0) return;
  message[size] = 0;
  const char *value = after(message, "budget ");
  if (value) __atomic_store_n(&monitor.budget, number_of(value) * 10, __ATOMIC_RELAXED);
  value = after(message, "latency ");
  if (value) __atomic_store_n(&monitor.latency, number_of(value), __ATOMIC_RELAXED);
  struct text text = {0};
  const struct {
    const char *name;
    uint64_t value;
  } figures[] = {
      {"budget_permille ", monitor.budget},     {"overhead_permille ", monitor.overhead},
      {"requests ", monitor.requests},          {"checked ", monitor.checked},
      {"threshold ", monitor.threshold},        {"period ", monitor.period},
      {"latency_microseconds ", monitor.latency}, {"late_permille ", monitor.late_share},
  };
  for (size_t at = 0; at < sizeof figures / sizeof *figures; at++) {
    add(&text, figures[at].name);
    add_number(&text, figures[at].value, 10);
    add(&text, "\n");
  }
  system_call(SYS_SENDTO, monitor.control, (long)text.bytes, (long)text.length, DONT_WAIT, (long)address, length);
}

// The share of requests that took longer than they may, among those since it was known how long a tick is.
static void count_late(void) {
  if (!monitor.latency) {
    monitor.latest = monitor.late_share = 0;
    return;
  }
  uint64_t ended = __atomic_load_n(&monitor.ended, __ATOMIC_RELAXED);
  uint64_t late = __atomic_load_n(&monitor.late, __ATOMIC_RELAXED);
  monitor.late_share = ended ? late * 1000 / ended : 0;
  __atomic_fetch_sub(&monitor.ended, ended / 8, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&monitor.late, late / 8, __ATOMIC_RELAXED);
  uint64_t us = (monotonic_ns() - monitor.from_ns) / 1000, ticks = __builtin_ia32_rdtsc() - monitor.from_ticks;
  // The product of two such numbers has more bits than a word.
  if (us) monitor.latest = (uint64_t)((double)ticks / (double)us * (double)monitor.latency) + 1;
}

// Compares what checks took with the budget, and requests with the time that they may take. Old requests count less
// and less.
static void update(void) {
  count_late();
  uint64_t checked = __atomic_load_n(&monitor.checked_time, __ATOMIC_RELAXED);
  uint64_t plain = __atomic_load_n(&monitor.plain_time, __ATOMIC_RELAXED);
  uint64_t slowdown = everett_hard_slowdown, useful = checked / (1000 + slowdown) * 1000;
  uint64_t base = plain + useful;
  monitor.overhead = base ? (checked - useful) * 1000 / base : 0;
  if (monitor.overhead > monitor.budget || monitor.late_share > MOST_LATE) {
    monitor.threshold /= 2;
    if (monitor.period < MOST_PERIOD) monitor.period *= 2;
  } else {
    monitor.threshold += monitor.threshold / 4 + 1;
    if (monitor.threshold > ~0ul >> 1) monitor.threshold = ~0ul >> 1;
    if (monitor.period > 1) monitor.period--;
  }
  __atomic_fetch_sub(&monitor.checked_time, checked / 8, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&monitor.plain_time, plain / 8, __ATOMIC_RELAXED);
  if (monitor.control >= 0) hear();
}

int everett_hard_enter(const char *entry, const long *arguments) {
  // Frames of entry points that are called by others lie below theirs. One that was left by a jump has none below.
  if (request.frame && arguments < request.frame) return everett_hard_level;
  request.frame = arguments;
  uint64_t number = __atomic_fetch_add(&monitor.requests, 1, __ATOMIC_RELAXED);
  if (number % UPDATE == UPDATE - 1) update();
  int level = everett_decide ? everett_decide(entry, arguments) <= monitor.threshold : number % monitor.period == 0;
  if (monitor.budget == 0) level = 0;
  if (level) __atomic_fetch_add(&monitor.checked, 1, __ATOMIC_RELAXED);
  everett_hard_level = level;
  request.start = __builtin_ia32_rdtsc();
  return level;
}

void everett_hard_leave(const long *arguments) {
  if (request.frame != arguments) return;
  uint64_t time = __builtin_ia32_rdtsc() - request.start;
  uint64_t *sum = everett_hard_level ? &monitor.checked_time : &monitor.plain_time;
  __atomic_fetch_add(sum, time, __ATOMIC_RELAXED);
  if (monitor.latest) {
    __atomic_fetch_add(&monitor.ended, 1, __ATOMIC_RELAXED);
    if (time > monitor.latest) __atomic_fetch_add(&monitor.late, 1, __ATOMIC_RELAXED);
  }
  request.frame = 0;
  everett_hard_level = 0;
}

static void open_control(const char *path) {
  enum { UNIX_FAMILY = 1, DATAGRAM_CLOSED_AT_EXEC = 2 | 0x80000 };
  struct {
    uint16_t family;
    char path[108];
  } address = {UNIX_FAMILY, {0}};
  for (size_t at = 0; path[at] && at < sizeof address.path - 1; at++) address.path[at] = path[at];
  long file = system_call(SYS_SOCKET, UNIX_FAMILY, DATAGRAM_CLOSED_AT_EXEC, 0, 0, 0, 0);
  if (file < 0 || system_call(SYS_BIND, file, (long)&address, sizeof address, 0, 0, 0) < 0)
    refuse("the control socket of EVERETT_CONTROL cannot be made");
  monitor.control = (int)file;
}

// At the start: the stack has the arguments and the environment.
static void prepare_decisions(word stack) {
  if (!&everett_hard_budget) return;
  monitor.budget = everett_hard_budget;
  monitor.from_ticks = __builtin_ia32_rdtsc();
  monitor.from_ns = monotonic_ns();
  const char **variable = (const char **)stack + 1 + *(long *)stack + 1;
  for (; *variable; variable++) {
    const char *value = after(*variable, "EVERETT_BUDGET=");
    if (value) monitor.budget = number_of(value) * 10;
    value = after(*variable, "EVERETT_LATENCY=");
    if (value) monitor.latency = number_of(value);
    value = after(*variable, "EVERETT_CONTROL=");
    if (value) open_control(value);
  }
}
