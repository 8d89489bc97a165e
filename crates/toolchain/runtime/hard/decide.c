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
enum { SYS_SOCKET = 41, SYS_CONNECT = 42, SYS_SENDTO = 44, SYS_RECVFROM = 45, SYS_BIND = 49, SYS_GETSOCKNAME = 51 };
enum { SYS_UNLINK = 87, SYS_CLOCK_GETTIME = 228 };

// Shared with the processes that `fork` makes: the budget is that of all of them.
static struct monitor {
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
} own = {.threshold = ~0ul >> 1, .period = 1}, *monitor = &own;

struct local_address {
  uint16_t family;
  char path[108];
};

// The control socket, and its name, which tells it from another file of the program with that number.
static struct {
  int file;
  struct local_address address;
} control = {.file = -1};

static __thread struct {
  const long *frame; // Of the outermost entry point.
  uint64_t start;
} request;

// A number with as many decimal places; moves the text behind it. Negative if there is none.
static long take_number(const char **text, int places) {
  long number = 0;
  const char *digits = *text;
  for (; *digits >= '0' && *digits <= '9'; digits++)
    if ((number = number * 10 + (*digits - '0')) > 1l << 40) return -1;
  if (digits == *text) return -1;
  int has_point = *digits == '.';
  if (has_point) digits++;
  for (; has_point && *digits >= '0' && *digits <= '9'; digits++)
    if (places > 0) number = number * 10 + (*digits - '0'), places--;
  while (places-- > 0) number *= 10;
  *text = digits;
  return number;
}

static int is_end(const char *text) { return *text == 0 || *text == '\n'; }

// Per cent in thousandths, or a negative number if a text is something else.
static long permille_of(const char *text) {
  long number = take_number(&text, 1);
  if (*text == '%') text++;
  return is_end(text) ? number : -1;
}

// The rest of a text that begins with a word, or null.
static const char *after(const char *text, const char *word) {
  while (*word && *text == *word) text++, word++;
  return *word ? (const char *)0 : text;
}

// A time in microseconds, such as `500`, `500us`, `1.5ms`, `2s`; or a negative number if a text is something else.
static long microseconds_of(const char *text) {
  long thousandths = take_number(&text, 3);
  if (thousandths < 0) return -1;
  static const struct {
    const char *name;
    long factor;
  } units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"", 1}};
  for (size_t at = 0; at < sizeof units / sizeof *units; at++) {
    const char *rest = after(text, units[at].name);
    if (rest && is_end(rest) && thousandths < (1l << 62) / units[at].factor)
      return thousandths * units[at].factor / 1000;
  }
  return -1;
}

static uint64_t monotonic_ns(void) {
  long now[2] = {0};
  system_call(SYS_CLOCK_GETTIME, 1, (long)now, 0, 0, 0, 0);
  return (uint64_t)now[0] * 1000000000 + (uint64_t)now[1];
}

static int is_same(const struct local_address *one, const struct local_address *other) {
  for (size_t at = 0; at < sizeof one->path; at++)
    if (one->path[at] != other->path[at]) return 0;
  return one->family == other->family;
}

// What was said by the control socket: `budget PERCENT`, `latency TIME`. Every message is answered with figures.
static void hear(void) {
  enum { DONT_WAIT = 0x40 };
  char message[64], address[128];
  struct local_address name = {0};
  unsigned length = sizeof name;
  // The program may have closed all files that it does not know, and opened others.
  int is_own = system_call(SYS_GETSOCKNAME, control.file, (long)&name, (long)&length, 0, 0, 0) == 0 &&
               is_same(&name, &control.address);
  if (!is_own) {
    control.file = -1;
    return;
  }
  length = sizeof address;
  long size = system_call(SYS_RECVFROM, control.file, (long)message, sizeof message - 1, DONT_WAIT, (long)address,
                          (long)&length);
  if (size < 0) return;
  message[size] = 0;
  const char *value = after(message, "budget ");
  long number = value ? permille_of(value) : -1;
  if (number >= 0) __atomic_store_n(&monitor->budget, (uint64_t)number, __ATOMIC_RELAXED);
  value = after(message, "latency ");
  number = value ? microseconds_of(value) : -1;
  if (number >= 0) __atomic_store_n(&monitor->latency, (uint64_t)number, __ATOMIC_RELAXED);
  struct text text = {0};
  const struct {
    const char *name;
    uint64_t value;
  } figures[] = {
      {"budget_permille ", monitor->budget},     {"overhead_permille ", monitor->overhead},
      {"requests ", monitor->requests},          {"checked ", monitor->checked},
      {"threshold ", monitor->threshold},        {"period ", monitor->period},
      {"latency_microseconds ", monitor->latency}, {"late_permille ", monitor->late_share},
  };
  for (size_t at = 0; at < sizeof figures / sizeof *figures; at++) {
    add(&text, figures[at].name);
    add_number(&text, figures[at].value, 10);
    add(&text, "\n");
  }
  system_call(SYS_SENDTO, control.file, (long)text.bytes, (long)text.length, DONT_WAIT, (long)address, length);
}

// Old requests count less and less. Those before a change of the threshold say little about what follows it.
static void forget(uint64_t *one, uint64_t *other, int is_changed) {
  uint64_t part = is_changed ? 2 : 8;
  uint64_t *sums[] = {one, other};
  for (size_t at = 0; at < 2; at++) {
    uint64_t sum = __atomic_load_n(sums[at], __ATOMIC_RELAXED);
    __atomic_fetch_sub(sums[at], (sum + part - 1) / part, __ATOMIC_RELAXED);
  }
}

// The share of requests that took longer than they may, among those since it was known how long a tick is.
static void count_late(void) {
  if (!monitor->latency) {
    monitor->latest = monitor->late_share = 0;
    return;
  }
  uint64_t ended = __atomic_load_n(&monitor->ended, __ATOMIC_RELAXED);
  uint64_t late = __atomic_load_n(&monitor->late, __ATOMIC_RELAXED);
  monitor->late_share = ended ? late * 1000 / ended : 0;
  forget(&monitor->ended, &monitor->late, monitor->late_share > MOST_LATE);
  uint64_t us = (monotonic_ns() - monitor->from_ns) / 1000, ticks = __builtin_ia32_rdtsc() - monitor->from_ticks;
  // The product of two such numbers has more bits than a word.
  if (us) monitor->latest = (uint64_t)((double)ticks / (double)us * (double)monitor->latency) + 1;
}

// Compares what checks took with the budget, and requests with the time that they may take.
static void update(void) {
  count_late();
  uint64_t checked = __atomic_load_n(&monitor->checked_time, __ATOMIC_RELAXED);
  uint64_t plain = __atomic_load_n(&monitor->plain_time, __ATOMIC_RELAXED);
  uint64_t slowdown = everett_hard_slowdown, useful = checked / (1000 + slowdown) * 1000;
  uint64_t base = plain + useful;
  monitor->overhead = base ? (checked - useful) * 1000 / base : 0;
  if (monitor->overhead > monitor->budget || monitor->late_share > MOST_LATE) {
    monitor->threshold /= 2;
    if (monitor->period < MOST_PERIOD) monitor->period *= 2;
  } else {
    monitor->threshold += monitor->threshold / 4 + 1;
    if (monitor->threshold > ~0ul >> 1) monitor->threshold = ~0ul >> 1;
    if (monitor->period > 1) monitor->period -= monitor->period / 8 + 1;
    if (monitor->period < 1) monitor->period = 1;
  }
  forget(&monitor->checked_time, &monitor->plain_time, monitor->overhead > monitor->budget);
  if (control.file >= 0) hear();
}

int everett_hard_enter(const char *entry, const long *arguments) {
  // Frames of entry points that are called by others lie below theirs. One that was left by a jump has none below.
  if (request.frame && arguments < request.frame) return everett_hard_level;
  request.frame = arguments;
  uint64_t number = __atomic_fetch_add(&monitor->requests, 1, __ATOMIC_RELAXED);
  if (number % UPDATE == UPDATE - 1) update();
  int level = everett_decide ? everett_decide(entry, arguments) <= monitor->threshold : number % monitor->period == 0;
  if (monitor->budget == 0) level = 0;
  if (level) __atomic_fetch_add(&monitor->checked, 1, __ATOMIC_RELAXED);
  everett_hard_level = level;
  request.start = __builtin_ia32_rdtsc();
  return level;
}

void everett_hard_leave(const long *arguments) {
  if (request.frame != arguments) return;
  uint64_t time = __builtin_ia32_rdtsc() - request.start;
  uint64_t *sum = everett_hard_level ? &monitor->checked_time : &monitor->plain_time;
  __atomic_fetch_add(sum, time, __ATOMIC_RELAXED);
  if (monitor->latest) {
    __atomic_fetch_add(&monitor->ended, 1, __ATOMIC_RELAXED);
    if (time > monitor->latest) __atomic_fetch_add(&monitor->late, 1, __ATOMIC_RELAXED);
  }
  request.frame = 0;
  everett_hard_level = 0;
}

static void open_control(const char *path) {
  enum { UNIX_FAMILY = 1, DATAGRAM_CLOSED_AT_EXEC = 2 | 0x80000, REFUSED = -111, IN_USE = -98 };
  struct local_address *address = &control.address;
  address->family = UNIX_FAMILY;
  size_t length = 0;
  for (; path[length] && length < sizeof address->path - 1; length++) address->path[length] = path[length];
  long file = system_call(SYS_SOCKET, UNIX_FAMILY, DATAGRAM_CLOSED_AT_EXEC, 0, 0, 0, 0);
  long made = path[length] ? -1 : system_call(SYS_BIND, file, (long)address, sizeof *address, 0, 0, 0);
  if (made == IN_USE) {
    long used = system_call(SYS_CONNECT, file, (long)address, sizeof *address, 0, 0, 0);
    if (used == 0) {
      static const char why[] = "everett: the control socket of EVERETT_CONTROL is that of another process\n";
      system_call(SYS_WRITE, 2, (long)why, sizeof why - 1, 0, 0, 0);
      system_call(SYS_CLOSE, file, 0, 0, 0, 0, 0);
      return;
    }
    // A process that was killed has left it behind.
    if (used == REFUSED) system_call(SYS_UNLINK, (long)address->path, 0, 0, 0, 0, 0);
    made = system_call(SYS_BIND, file, (long)address, sizeof *address, 0, 0, 0);
  }
  if (made < 0) refuse("the control socket of EVERETT_CONTROL cannot be made");
  control.file = (int)file;
}

// At the start: the stack has the arguments and the environment.
static void prepare_decisions(word stack) {
  if (!&everett_hard_budget) return;
  enum { READ_AND_WRITE = 3, SHARED_AND_NEW = 0x21 };
  long shared = system_call(SYS_MMAP, 0, sizeof own, READ_AND_WRITE, SHARED_AND_NEW, -1, 0);
  if (shared > 0) {
    monitor = (struct monitor *)shared;
    *monitor = own;
  }
  monitor->budget = everett_hard_budget;
  monitor->from_ticks = __builtin_ia32_rdtsc();
  monitor->from_ns = monotonic_ns();
  const char **variable = (const char **)stack + 1 + *(long *)stack + 1;
  for (; *variable; variable++) {
    const char *value = after(*variable, "EVERETT_BUDGET=");
    long number = value ? permille_of(value) : 0;
    if (number < 0) refuse("EVERETT_BUDGET is not a number of per cent");
    if (value) monitor->budget = (uint64_t)number;
    value = after(*variable, "EVERETT_LATENCY=");
    number = value ? microseconds_of(value) : 0;
    if (number < 0) refuse("EVERETT_LATENCY is not a number of microseconds, or one with us, ms or s");
    if (value) monitor->latency = (uint64_t)number;
    value = after(*variable, "EVERETT_CONTROL=");
    if (value) open_control(value);
  }
}
