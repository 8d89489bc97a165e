// Dynamic activation: which requests run with all checks. An entry point of the program asks here, once for each
// request; functions go by the thread's flag. The threshold moves with the measured overhead, so that it stays within
// the budget.

__thread int everett_hard_level;

// The program's build says both, in thousandths.
extern const uint32_t everett_hard_budget __attribute__((weak));
extern const uint32_t everett_hard_slowdown __attribute__((weak));

// The program may say how popular a request is, such as by `everett_popularity` of a survey. Popular ones go unchecked
// first. Without it all requests are alike, and one of so many is checked.
unsigned long everett_decide(const char *entry, const long *arguments) __attribute__((weak));

enum { UPDATE = 64, MOST_PERIOD = 1 << 16, SYS_SOCKET = 41, SYS_SENDTO = 44, SYS_RECVFROM = 45, SYS_BIND = 49 };

static struct {
  uint64_t budget;    // In thousandths.
  uint64_t threshold; // The most popular request that is checked.
  uint64_t period;    // One of so many is checked.
  uint64_t requests, checked;
  uint64_t checked_time, plain_time;
  uint64_t overhead; // In thousandths.
  int control;
} monitor = {.threshold = ~0ul >> 1, .period = 1, .control = -1};

static __thread struct {
  const long *frame; // Of the outermost entry point.
  uint64_t start;
} request;

// What was said by the control socket: `budget PERCENT`. Every message is answered with figures.
static void hear(void) {
  enum { DONT_WAIT = 0x40 };
  char message[64], address[128];
  unsigned length = sizeof address;
  long size = system_call(SYS_RECVFROM, monitor.control, (long)message, sizeof message - 1, DONT_WAIT, (long)address,
                          (long)&length);
  if (size < 0) return;
  message[size] = 0;
  static const char word[] = "budget ";
  size_t at = 0;
  while (word[at] && message[at] == word[at]) at++;
  if (!word[at]) {
    uint64_t percent = 0;
    while (message[at] >= '0' && message[at] <= '9') percent = percent * 10 + (uint64_t)(message[at++] - '0');
    __atomic_store_n(&monitor.budget, percent * 10, __ATOMIC_RELAXED);
  }
  struct text text = {0};
  const struct {
    const char *name;
    uint64_t value;
  } figures[] = {
      {"budget_permille ", monitor.budget},     {"overhead_permille ", monitor.overhead},
      {"requests ", monitor.requests},          {"checked ", monitor.checked},
      {"threshold ", monitor.threshold},        {"period ", monitor.period},
  };
  for (at = 0; at < sizeof figures / sizeof *figures; at++) {
    add(&text, figures[at].name);
    add_number(&text, figures[at].value, 10);
    add(&text, "\n");
  }
  system_call(SYS_SENDTO, monitor.control, (long)text.bytes, (long)text.length, DONT_WAIT, (long)address, length);
}

// Compares what checks took with the budget. Old requests count less and less.
static void update(void) {
  uint64_t checked = __atomic_load_n(&monitor.checked_time, __ATOMIC_RELAXED);
  uint64_t plain = __atomic_load_n(&monitor.plain_time, __ATOMIC_RELAXED);
  uint64_t slowdown = everett_hard_slowdown, useful = checked / (1000 + slowdown) * 1000;
  uint64_t base = plain + useful;
  monitor.overhead = base ? (checked - useful) * 1000 / base : 0;
  if (monitor.overhead > monitor.budget) {
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
  request.frame = 0;
  everett_hard_level = 0;
}

static const char *value_of(const char *variable, const char *name) {
  while (*name && *variable == *name) variable++, name++;
  return *name == 0 && *variable == '=' ? variable + 1 : (const char *)0;
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
  const char **variable = (const char **)stack + 1 + *(long *)stack + 1;
  for (; *variable; variable++) {
    const char *value = value_of(*variable, "EVERETT_BUDGET");
    if (value) {
      uint64_t percent = 0;
      while (*value >= '0' && *value <= '9') percent = percent * 10 + (uint64_t)(*value++ - '0');
      monitor.budget = percent * 10;
    }
    value = value_of(*variable, "EVERETT_CONTROL");
    if (value) open_control(value);
  }
}
