// The functions of everett.h and klee/klee.h in the native program: values come from the .ktest
// file that EVERETT_TEST or KTEST_FILE names, in the order of the calls, or are zero.
//
// KTEST_FILE is the variable of KLEE's library for replays, and is as strict: where the test does not fit the program, a
// message begins with KLEE_RUN_TEST_ERROR and the program ends with status 1, unless KLEE_RUN_TEST_ERRORS_NON_FATAL is set.
//
// Nothing of libc is used: what this file referred to would have to stay in the bitcode of every
// program that calls it.

#include <stddef.h>
#include <stdint.h>

enum { SYS_READ = 0, SYS_WRITE = 1, SYS_OPEN = 2, SYS_CLOSE = 3, SYS_MMAP = 9 };
enum { SYS_EXIT_GROUP = 231 };
enum { OWN_CALLS = 0x10000, OWN_INPUT = OWN_CALLS + 100 };

static size_t length_of(const char *text) {
  size_t length = 0;
  while (text[length]) length++;
  return length;
}

static void say(const char *text) {
  system_call(SYS_WRITE, 2, (long)text, (long)length_of(text), 0, 0, 0);
}

static void say_line(const char *what, const char *detail) {
  // Under Everett's kernel all is as it was when the program was explored, and then nothing was said.
  if (system_call(OWN_INPUT, 0, 0, 0, 0, 0, 0) == 0) return;
  say("everett: ");
  say(what);
  say(detail ? detail : "");
  say("\n");
}

__attribute__((noreturn)) static void leave(int status) {
  for (;;) system_call(SYS_EXIT_GROUP, status, 0, 0, 0, 0, 0);
}

// The test file: the whole file, and where the next object to be handed out begins.
static struct {
  int opened;
  // KTEST_FILE names it, and whether errors of the test end the program.
  int strict, goes_on;
  const unsigned char *bytes;
  size_t size;
  size_t position;
  uint32_t objects_left;
} test;

static char *map_memory(size_t size) {
  long address = system_call(SYS_MMAP, 0, (long)size, 3, 0x22, -1, 0);
  if (address < 0 && address > -4096) {
    say_line("no memory for the test file", 0);
    leave(2);
  }
  return (char *)address;
}

// Reads a file of unknown size; gives NULL where it cannot be opened.
static char *read_file(const char *path, size_t *size) {
  long file = system_call(SYS_OPEN, (long)path, 0x80000, 0, 0, 0, 0);
  if (file < 0) return 0;
  size_t capacity = 65536, used = 0;
  char *buffer = map_memory(capacity);
  for (;;) {
    long got = system_call(SYS_READ, file, (long)(buffer + used), (long)(capacity - used - 1), 0, 0, 0);
    if (got <= 0) break;
    used += (size_t)got;
    if (used + 1 == capacity) {
      char *larger = map_memory(capacity * 2);
      for (size_t i = 0; i < used; i++) larger[i] = buffer[i];
      buffer = larger;
      capacity *= 2;
    }
  }
  system_call(SYS_CLOSE, file, 0, 0, 0, 0, 0);
  buffer[used] = 0;
  *size = used;
  return buffer;
}

// The value of an environment variable, whose name ends in `=`; NULL where it is not set or empty.
static const char *variable(const char *environment, size_t size, const char *name) {
  for (size_t at = 0; at < size; at += length_of(environment + at) + 1) {
    size_t i = 0;
    while (name[i] && environment[at + i] == name[i]) i++;
    if (!name[i] && environment[at + i]) return environment + at + i;
  }
  return 0;
}

static const char *test_path(void) {
  size_t size;
  const char *environment = read_file("/proc/self/environ", &size);
  if (!environment) return 0;
  const char *path = variable(environment, size, "EVERETT_TEST=");
  if (path) return path;
  path = variable(environment, size, "KTEST_FILE=");
  test.strict = path != 0;
  test.goes_on = variable(environment, size, "KLEE_RUN_TEST_ERRORS_NON_FATAL=") != 0;
  return path;
}

static int take_number(uint32_t *number) {
  if (test.size - test.position < 4) return 0;
  const unsigned char *at = test.bytes + test.position;
  *number = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
  test.position += 4;
  return 1;
}

static int take_bytes(const unsigned char **bytes, uint32_t *size) {
  if (!take_number(size) || test.size - test.position < *size) return 0;
  *bytes = test.bytes + test.position;
  test.position += *size;
  return 1;
}

// The head of a .ktest file: magic, version, arguments, symbolic argv, number of objects.
static int take_head(void) {
  static const char *const magics[] = {"KTEST", "BOUT\n"};
  int known = 0;
  for (int m = 0; m < 2 && test.size >= 5; m++) {
    int same = 1;
    for (int i = 0; i < 5; i++) same &= test.bytes[i] == (unsigned char)magics[m][i];
    known |= same;
  }
  if (!known) return 0;
  test.position = 5;
  uint32_t version, arguments, number;
  const unsigned char *bytes;
  if (!take_number(&version) || version > 3 || !take_number(&arguments)) return 0;
  while (arguments--)
    if (!take_bytes(&bytes, &number)) return 0;
  if (version >= 2 && (!take_number(&number) || !take_number(&number))) return 0;
  return take_number(&test.objects_left);
}

static void say_number(long number) {
  char text[21];
  int at = sizeof text - 1;
  unsigned long rest = number < 0 ? -(unsigned long)number : (unsigned long)number;
  text[at] = 0;
  do text[--at] = (char)('0' + rest % 10);
  while (rest /= 10);
  if (number < 0) text[--at] = '-';
  say(text + at);
}

// The test does not fit the program: the end of a strict one, after the message that the caller began.
static void mismatch_said(void) {
  say("\n");
  if (!test.goes_on) leave(1);
  say("KLEE_RUN_TEST_ERROR: Forcing execution to continue\n");
}

static void open_test(void) {
  if (test.opened) return;
  test.opened = 1;
  const char *path = test_path();
  if (!path) return;
  test.bytes = (const unsigned char *)read_file(path, &test.size);
  int is_read = test.bytes != 0;
  if (is_read && take_head()) return;
  if (test.strict) {
    say("KLEE-RUNTIME: unable to open .ktest file\n");
    leave(1);
  }
  say_line(is_read ? "EVERETT_TEST is not a test file: " : "cannot read EVERETT_TEST: ", path);
  leave(2);
}

// A name that is used again has a number behind it in the test: `byte`, `byte_1`, `byte_2`.
static int same_name(const unsigned char *bytes, uint32_t size, const char *name) {
  uint32_t i = 0;
  for (; name[i]; i++)
    if (i == size || bytes[i] != (unsigned char)name[i]) return 0;
  if (i == size) return 1;
  if (bytes[i++] != '_' || i == size) return 0;
  for (; i < size; i++)
    if (bytes[i] < '0' || bytes[i] > '9') return 0;
  return 1;
}

// Whether an object belongs to arguments, files or the environment, and not to a call of the program.
static int is_of_environment(const unsigned char *name, uint32_t size) {
  static const char *const beginnings[] = {"arg", "n_args", "stdin", "stdout", "model_version", "mode of "};
  for (unsigned i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
    uint32_t at = 0;
    while (beginnings[i][at] && at < size && name[at] == (unsigned char)beginnings[i][at]) at++;
    if (!beginnings[i][at]) return 1;
  }
  static const char *const endings[] = {"-data", "-data-stat"};
  for (unsigned i = 0; i < sizeof endings / sizeof *endings; i++) {
    uint32_t length = (uint32_t)length_of(endings[i]), at = 0;
    while (at < length && length <= size && name[size - length + at] == (unsigned char)endings[i][at]) at++;
    if (at == length) return 1;
  }
  return 0;
}

static void say_other_name(const char *name, const unsigned char *label, uint32_t size) {
  say("KLEE_RUN_TEST_ERROR: object name mismatch. Requesting \"");
  say(name);
  say("\" but returning \"");
  system_call(SYS_WRITE, 2, (long)label, size, 0, 0, 0);
  say("\"");
  mismatch_said();
}

static void say_other_size(const char *name, size_t size, uint32_t given) {
  if (!test.strict) {
    say_line("object has another size in the test: ", name);
    return;
  }
  say("KLEE_RUN_TEST_ERROR: object sizes differ. Expected ");
  say_number((long)size);
  say(" but got ");
  say_number(given);
  mismatch_said();
}

// Hands out the next object of that name. Objects of other names before it belong to arguments,
// files or the environment and are passed over.
static void next_object(void *address, size_t size, const char *name) {
  // Where the program runs under Everett's kernel, that has the values.
  if (system_call(OWN_INPUT, (long)name, (long)address, (long)size, 0, 0, 0) == 0) return;
  open_test();
  unsigned char *to = address;
  size_t filled = 0;
  size_t position = test.position;
  uint32_t left = test.objects_left;
  while (test.objects_left) {
    const unsigned char *label, *bytes;
    uint32_t label_size, bytes_size;
    if (!take_bytes(&label, &label_size) || !take_bytes(&bytes, &bytes_size)) {
      say_line("EVERETT_TEST is cut short", 0);
      leave(2);
    }
    test.objects_left--;
    if (!same_name(label, label_size, name)) {
      if (!test.strict || is_of_environment(label, label_size)) continue;
      say_other_name(name, label, label_size);
    }
    if (bytes_size != size) say_other_size(name, size, bytes_size);
    for (; filled < size && filled < bytes_size; filled++) to[filled] = bytes[filled];
    for (; filled < size; filled++) to[filled] = 0;
    return;
  }
  if (test.strict) {
    say("KLEE_RUN_TEST_ERROR: out of inputs. Will use zero if continuing.");
    mismatch_said();
  } else if (test.bytes) {
    say_line("the test has no object for: ", name);
  }
  test.position = position;
  test.objects_left = left;
  for (; filled < size; filled++) to[filled] = 0;
}

static void assume(int holds) {
  if (holds) return;
  if (test.strict) {
    say("KLEE_RUN_TEST_ERROR: invalid klee_assume");
    return mismatch_said();
  }
  say_line("an assumption does not hold for these inputs", 0);
  leave(0);
}

__attribute__((noreturn)) static void report(const char *message) {
  say_line("reported: ", message);
  abort_process();
}

void everett_make_symbolic(void *address, size_t size, const char *name) {
  next_object(address, size, name);
}
void everett_assume(uint64_t condition) { assume(condition != 0); }
int64_t everett_range(int64_t low, int64_t high, const char *name) {
  int64_t value = 0;
  next_object(&value, sizeof value, name);
  // Without a test the value is zero, which need not be in range.
  if (!test.bytes && (value < low || value >= high)) value = low;
  assume(value >= low && value < high);
  return value;
}
uint32_t everett_choose(uint32_t count, const char *name) {
  uint32_t value = 0;
  next_object(&value, sizeof value, name);
  assume(value < count);
  return value;
}
void everett_expose(const char *state, const char *key, const void *address, size_t size) {
  system_call(OWN_CALLS + 7, (long)state, (long)key, (long)address, (long)size, 0, 0);
}
int everett_is_symbolic(uint64_t value) { return (void)value, 0; }
void everett_report(const char *message) { report(message); }
void everett_silent_exit(int status) { leave(status); }
void everett_prefer(uint64_t condition) { (void)condition; }
void everett_assert(uint64_t condition) {
  if (!condition) report("assertion failed");
}

void klee_define_fixed_object(void *addr, size_t nbytes) {
  enum { READ_WRITE = 3, PRIVATE_ANONYMOUS_AT_ADDRESS = 0x100022 };
  uintptr_t first = (uintptr_t)addr & ~(uintptr_t)4095;
  uintptr_t end = ((uintptr_t)addr + nbytes + 4095) & ~(uintptr_t)4095;
  for (; first < end; first += 4096) {
    // Another fixed object may have mapped the page already.
    long got = system_call(SYS_MMAP, (long)first, 4096, READ_WRITE, PRIVATE_ANONYMOUS_AT_ADDRESS, -1, 0);
    if (got == -17 || got == (long)first) continue;
    say("everett: klee_define_fixed_object: the kernel maps nothing there\n");
    leave(2);
  }
}
void klee_make_symbolic(void *addr, size_t nbytes, const char *name) {
  next_object(addr, nbytes, name ? name : "unnamed");
}
int klee_range(int begin, int end, const char *name) {
  int value = 0;
  if (begin + 1 == end) return begin;
  next_object(&value, sizeof value, name);
  if (!test.bytes && (value < begin || value >= end)) value = begin;
  if (test.strict && (value < begin || value >= end)) {
    say("KLEE_RUN_TEST_ERROR: invalid klee_range(");
    say_number(begin);
    say(",");
    say_number(end);
    say(",");
    say(name);
    say(") value, got: ");
    say_number(value);
    mismatch_said();
    return value;
  }
  assume(value >= begin && value < end);
  return value;
}
int klee_int(const char *name) {
  int value = 0;
  next_object(&value, sizeof value, name);
  return value;
}
void klee_abort(void) { report("klee_abort"); }
void klee_report_error(const char *file, int line, const char *message, const char *suffix) {
  (void)line, (void)suffix;
  say_line("reported in ", file);
  report(message);
}
size_t klee_get_obj_size(void *ptr) {
  (void)ptr;
  report("klee_get_obj_size is not known natively");
}
void klee_print_expr(const char *msg, ...) { say_line(msg, 0); }
uintptr_t klee_choose(uintptr_t n) {
  uintptr_t value = 0;
  next_object(&value, sizeof value, "klee_choose");
  if (test.strict && value >= n) {
    say("KLEE_RUN_TEST_ERROR: klee_choose failure. max = ");
    say_number((long)n);
    say(", got = ");
    say_number((long)value);
    mismatch_said();
    return value;
  }
  assume(value < n);
  return value;
}
unsigned klee_is_symbolic(uintptr_t n) { return (void)n, 0; }
unsigned klee_is_replay(void) { return 1; }
void klee_assume(uintptr_t condition) { assume(condition != 0); }
void klee_warning(const char *message) { say_line("warning: ", message); }
void klee_warning_once(const char *message) { say_line("warning: ", message); }
void klee_prefer_cex(void *object, uintptr_t condition) { (void)object, (void)condition; }
void klee_posix_prefer_cex(void *object, uintptr_t condition) { (void)object, (void)condition; }
void klee_mark_global(void *object) { (void)object; }
float klee_get_valuef(float expr) { return expr; }
double klee_get_valued(double expr) { return expr; }
long klee_get_valuel(long expr) { return expr; }
long long klee_get_valuell(long long expr) { return expr; }
int32_t klee_get_value_i32(int32_t expr) { return expr; }
int64_t klee_get_value_i64(int64_t expr) { return expr; }
void klee_check_memory_access(const void *address, size_t size) { (void)address, (void)size; }
void klee_set_forking(unsigned enable) { (void)enable; }
void klee_alias_function(const char *fn_name, const char *new_fn_name) {
  (void)fn_name, (void)new_fn_name;
}
void klee_stack_trace(void) {}
void klee_print_range(const char *name, int arg) { (void)name, (void)arg; }
void klee_open_merge(void) {}
void klee_close_merge(void) {}
int klee_get_errno(void) { return 0; }

// Checks of -fsanitize= that fail. The engine tells what is wrong; here the program ends as by a trap.
struct place {
  const char *file;
  uint32_t line, column;
};
__attribute__((noreturn)) static void check_failed(const struct place *at) {
  say_line("a check of -fsanitize= failed in ", at->file);
  __builtin_trap();
}
#define CHECK(name)                                                                                     \
  __attribute__((noreturn)) void __ubsan_handle_##name(const struct place *at) { check_failed(at); }     \
  __attribute__((noreturn, alias("__ubsan_handle_" #name))) void __ubsan_handle_##name##_abort(const struct place *);
CHECK(add_overflow)
CHECK(sub_overflow)
CHECK(mul_overflow)
CHECK(negate_overflow)
CHECK(divrem_overflow)
CHECK(type_mismatch_v1)
CHECK(pointer_overflow)
CHECK(implicit_conversion)
CHECK(alignment_assumption)
CHECK(shift_out_of_bounds)
CHECK(out_of_bounds)
CHECK(local_out_of_bounds)
CHECK(builtin_unreachable)
CHECK(missing_return)
CHECK(vla_bound_not_positive)
CHECK(float_cast_overflow)
CHECK(load_invalid_value)
CHECK(invalid_builtin)
CHECK(function_type_mismatch)
CHECK(nonnull_return_v1)
CHECK(nullability_return_v1)
CHECK(nonnull_arg)
CHECK(nullability_arg)

// What is said about the host goes to Everett's kernel; the real one does not know these calls and refuses them.
void everett_faults_enable(void) { system_call(OWN_CALLS, 0, 0, 0, 0, 0, 0); }
void everett_faults_disable(void) { system_call(OWN_CALLS + 1, 0, 0, 0, 0, 0, 0); }
void everett_set_max_heap(size_t bytes) { system_call(OWN_CALLS + 2, (long)bytes, 0, 0, 0, 0, 0); }
void everett_set_scheduler(int kind, uint64_t number) {
  system_call(OWN_CALLS + 3, kind, (long)number, 0, 0, 0, 0);
}
void everett_symbolic_source(int fd, size_t size) {
  system_call(OWN_CALLS + 4, fd, (long)size, 0, 0, 0, 0);
}
void everett_fragment(int fd, int pieces) { system_call(OWN_CALLS + 5, fd, pieces, 0, 0, 0, 0); }
void everett_inject(int fd, int on) { system_call(OWN_CALLS + 6, fd, on, 0, 0, 0, 0); }

// netklee.h. The real kernel knows no worlds: there all of it is done as soon as it is said.
static int declare(long number, long a, long b, long c, long d, long e) {
  enum { NO_SUCH_CALL = -38, FIRST = OWN_CALLS + 32 };
  long result = system_call(FIRST + number, a, b, c, d, e, 0);
  return result == NO_SUCH_CALL ? 0 : (int)result;
}
int klee_net_add_network(const char *name) { return declare(0, (long)name, 0, 0, 0, 0); }
int klee_net_add_router(const char *name) { return declare(1, (long)name, 0, 0, 0, 0); }
int klee_net_add_interface(int interface, const char *network, const char *router) {
  return declare(2, interface, (long)network, (long)router, 0, 0);
}
int klee_net_add_ipv4_address(uint32_t address, unsigned mask, int interface, int primary,
                              const char *router) {
  return declare(3, address, mask, interface, primary, (long)router);
}
int klee_net_add_ipv6_address(const char *address, unsigned mask, int interface, int primary,
                              const char *router) {
  return declare(4, (long)address, mask, interface, primary, (long)router);
}
int klee_net_add_ipv4_route(uint32_t destination, unsigned mask, uint32_t gateway,
                            const char *router) {
  return declare(5, destination, mask, gateway, (long)router, 0);
}
int klee_net_add_ipv6_route(const char *destination, unsigned mask, const char *gateway,
                            const char *router) {
  return declare(6, (long)destination, mask, (long)gateway, (long)router, 0);
}
int klee_net_host_setup(const char *hostname, int server, int sequence) {
  return declare(7, (long)hostname, server, sequence, 0, 0);
}
int klee_invariant_expose_data(int state, const char *key, const void *data, size_t size) {
  return declare(8, state, (long)key, (long)data, (long)size, 0);
}
int klee_net_write_filesystem(void) { return declare(9, 0, 0, 0, 0, 0); }
