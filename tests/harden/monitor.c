// Runs requests through the monitor, and fails with the line of what is not as it should be.
const uint32_t everett_hard_budget = 1000000;
const uint32_t everett_hard_slowdown = 500;

static const struct {
  const char *text;
  long us;
} times[] = {
    {"500", 500},  {"500us", 500}, {"1.5ms", 1500}, {"2s", 2000000}, {"0", 0},   {"0.25ms\n", 250},
    {"", -1},      {"ms", -1},     {"2m", -1},      {"2sec", -1},    {"-1", -1}, {"1 ms", -1},
};

// A thousand requests. Returns how many of them were checked.
static int requests(uint64_t plain_us, uint64_t checked_us) {
  int checked = 0;
  for (int at = 0; at < 1000; at++) {
    long arguments[6] = {0};
    int is_checked = everett_hard_enter("handle", arguments);
    test_ns += (is_checked ? checked_us : plain_us) * 1000;
    everett_hard_leave(arguments);
    checked += is_checked;
    test_ns += 1000;
  }
  return checked;
}

#define WANT(condition) \
  if (!(condition)) return __LINE__ % 200 + 1

int main(void) {
  for (size_t at = 0; at < sizeof times / sizeof *times; at++) WANT(microseconds_of(times[at].text) == times[at].us);
  WANT(permille_of("2.5%") == 25 && permille_of("7") == 70 && permille_of("x") == -1);
  long stack[] = {0, 0, (long)"EVERETT_LATENCY=2ms", 0};
  prepare_decisions((word)stack);
  WANT(monitor->latency == 2000 && monitor->budget == 1000000);
  // Within the limit all requests are checked.
  WANT(requests(1000, 1500) == 1000 && monitor->late_share == 0);
  // Checked ones are late: at most one of twenty may be, and nearly as many are.
  requests(1000, 3000);
  requests(1000, 3000);
  int checked = 0;
  for (int at = 0; at < 10; at++) checked += requests(1000, 3000);
  WANT(checked > 300 && checked < 600);
  WANT(monitor->late_share < 60);
  // When checks are cheap again, more requests are checked, up to all.
  for (int at = 0; at < 20; at++) checked = requests(1000, 1500);
  WANT(checked == 1000);
  // Where requests are late without checks, too, hardly any is checked.
  for (int at = 0; at < 5; at++) checked = requests(3000, 3000);
  WANT(checked <= 1 && monitor->late_share > 900);
  // The budget counts beside the limit: the part of a checked request that checks take is a third.
  monitor->budget = 50;
  for (int at = 0; at < 40; at++) checked = requests(100, 150);
  WANT(checked > 20 && checked < 250 && monitor->late_share == 0);
  return 0;
}
