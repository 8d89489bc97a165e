/* The library that Everett loads into programs to fail their libc functions. The tables SYMBOLS and FUNCTIONS and one
   wrapper for each symbol are generated before it is compiled. It includes no header: all arguments and results are
   words in registers, so one wrapper serves all functions with up to six arguments. */

typedef unsigned long word;
typedef word (*real_function)(word, word, word, word, word, word);

struct function {
  const char *name;
  int done;            /* does its work even if it fails */
  unsigned long count; /* calls of this process */
};

struct symbol {
  const char *name;
  int function;
  int stream; /* the argument that is a stream, or -1 */
  real_function real;
};

struct fault {
  int function;
  unsigned long first, last;
  long retval;
  int error;
  int asks;            /* only calls from a site fail and count; the tracer knows the site (2: and the arguments) */
  unsigned long count; /* calls from there */
};

/* A stack that called a function: whether it is the site of a fault (1, or 2 if not), how often it was counted. */
struct caller {
  word key;
  int answer;
  unsigned long counted;
};

struct place {
  const char *file;
  void *base;
  const char *symbol;
  void *address;
};

extern void *dlsym(void *, const char *);
extern int dladdr(const void *, struct place *);
extern int *__errno_location(void);
extern long syscall(long, ...);
extern int pthread_atfork(void (*)(void), void (*)(void), void (*)(void));
extern int backtrace(void **, int) __attribute__((weak));
extern char **environ;
extern word __libc_malloc(word, word, word, word, word, word) __attribute__((weak));
extern word __libc_calloc(word, word, word, word, word, word) __attribute__((weak));
extern word __libc_realloc(word, word, word, word, word, word) __attribute__((weak));

#define NEXT ((void *)-1L)
#define MAX_FAULTS 16
#define MAX_FRAMES 24
#define MAX_REPORTS 100
#define MAX_CALLERS 4096
#define MAX_PROBES 32
#define MAX_CALLER_FRAMES 64
#define MAX_COUNTED 1000
/* The flag of an error in the first word of a stream, in glibc and in musl. */
#define STREAM_ERROR 0x20
#define SYS_READ 0
#define SYS_WRITE 1
#define SYS_OPEN 2
#define SYS_CLOSE 3
#define SYS_MMAP 9
#define SYS_GETPID 39
#define SYS_FTRUNCATE 77
#define SYS_READLINK 89
/* No system call of Linux: the tracer answers whether a fault's site is on the stack, counts the site of a call (-1), or
   notes a fault (-2). The last argument is the address of those of the call. */
#define ASK_TRACER 1022

static struct function functions[] = {FUNCTIONS};
static struct symbol symbols[] = {SYMBOLS};
#define FUNCTION_COUNT (sizeof(functions) / sizeof(*functions))
#define SYMBOL_COUNT (sizeof(symbols) / sizeof(*symbols))

static struct fault faults[MAX_FAULTS];
static int fault_count;
static struct caller callers[MAX_CALLERS];
static int started;
static int active;
static int observed;
static char program[64];
static const char *log_file;
static const char *count_folder;
/* Counts that outlive the process, for profiles. */
static unsigned long *shared_counts;
static __thread int inside __attribute__((tls_model("initial-exec")));

static unsigned long length(const char *text) {
  unsigned long count = 0;
  while (text[count]) count++;
  return count;
}

static int same(const char *one, const char *two) {
  while (*one && *one == *two) one++, two++;
  return *one == *two;
}

static const char *last_part(const char *path) {
  const char *last = path;
  for (; *path; path++)
    if (*path == '/') last = path + 1;
  return last;
}

/* getenv may be wrapped, and its caller counted. */
static const char *variable(const char *name) {
  unsigned long size = length(name);
  for (char **at = environ; at && *at; at++) {
    unsigned long same_bytes = 0;
    while (same_bytes < size && (*at)[same_bytes] == name[same_bytes]) same_bytes++;
    if (same_bytes == size && (*at)[size] == '=') return *at + size + 1;
  }
  return 0;
}

/* Whether a list with commas has a name. */
static int listed(const char *list, const char *name) {
  unsigned long size = length(name);
  while (size && *list) {
    unsigned long at = 0;
    while (at < size && list[at] == name[at]) at++;
    if (at == size && (list[at] == ',' || !list[at])) return 1;
    while (*list && *list != ',') list++;
    if (*list) list++;
  }
  return 0;
}

static void resolve(struct symbol *symbol) {
  real_function real = 0;
  if (same(symbol->name, "malloc")) real = __libc_malloc;
  if (same(symbol->name, "calloc")) real = __libc_calloc;
  if (same(symbol->name, "realloc")) real = __libc_realloc;
  if (!real) real = (real_function)dlsym(NEXT, symbol->name);
  symbol->real = real;
}

struct text {
  char bytes[4096];
  unsigned long size;
};

static void add(struct text *text, const char *more) {
  while (*more && text->size < sizeof text->bytes - 2) text->bytes[text->size++] = *more++;
}

static void add_number(struct text *text, unsigned long number, unsigned base) {
  char digits[24];
  int at = sizeof digits - 1;
  digits[at] = 0;
  do digits[--at] = "0123456789abcdef"[number % base];
  while ((number /= base) && at);
  add(text, digits + at);
}

static void add_frame(struct text *text, word address) {
  struct place place = {0};
  if (!dladdr((void *)address, &place) || !place.file) {
    add(text, "?");
    return;
  }
  add(text, *last_part(place.file) ? last_part(place.file) : program);
  if (place.symbol) {
    add(text, "!");
    add(text, place.symbol);
    add(text, "+0x");
    add_number(text, address - (word)place.address, 16);
  } else {
    add(text, "+0x");
    add_number(text, address - (word)place.base, 16);
  }
}

/* Appends a line to the log: a fault has happened. */
static void report(struct function *function, unsigned long number, word *arguments) {
  /* A program that tries for ever fails for ever: the first faults tell enough. */
  static unsigned long reported;
  if (__atomic_add_fetch(&reported, 1, __ATOMIC_SEQ_CST) > MAX_REPORTS) return;
  /* A tracer also knows the names of static functions. */
  if (syscall(ASK_TRACER, -2L, (long)(function - functions), number, arguments) == 1) return;
  struct text line;
  void *frames[MAX_FRAMES];
  line.size = 0;
  add(&line, "I\t");
  add(&line, program);
  add(&line, "\t");
  add(&line, function->name);
  add(&line, "\t");
  add_number(&line, number, 10);
  add(&line, "\t");
  int count = backtrace ? backtrace(frames, MAX_FRAMES) : 0;
  /* Frames of our own are none of the program. */
  struct place mine = {0}, other = {0};
  int added = 0;
  dladdr((void *)report, &mine);
  for (int at = 0; at < count; at++) {
    if (dladdr(frames[at], &other) && other.base == mine.base) continue;
    if (added++) add(&line, "|");
    add_frame(&line, (word)frames[at] - 1);
  }
  line.bytes[line.size++] = '\n';
  if (!log_file) return;
  long file = syscall(SYS_OPEN, log_file, 02001 | 0100 | 02000000, 0666);
  if (file < 0) return;
  syscall(SYS_WRITE, file, line.bytes, line.size);
  syscall(SYS_CLOSE, file);
}

/* Returns the entry of the stack of this call; 0 if there is none, as for stacks that are too deep to be known whole. */
static struct caller *caller(word salt) {
  void *frames[MAX_CALLER_FRAMES];
  inside = 1;
  int count = backtrace ? backtrace(frames, MAX_CALLER_FRAMES) : 0;
  inside = 0;
  if (count <= 0 || count == MAX_CALLER_FRAMES) return 0;
  word key = 0xcbf29ce484222325UL ^ salt;
  for (int at = 0; at < count; at++) key = (key ^ (word)frames[at]) * 0x100000001b3UL, key ^= key >> 29;
  if (!key) key = 1;
  for (word probe = 0; probe < MAX_PROBES; probe++) {
    struct caller *found = &callers[(key + probe) % MAX_CALLERS];
    word empty = 0;
    if (__atomic_compare_exchange_n(&found->key, &empty, key, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) || empty == key)
      return found;
  }
  return 0;
}

/* Whether this call comes from the site of a fault. The tracer unwinds slowly, so it is asked once about each stack. */
static int is_at_site(int fault, word *arguments) {
  struct caller *from = faults[fault].asks == 2 ? 0 : caller((word)fault + 1);
  int answer = from ? __atomic_load_n(&from->answer, __ATOMIC_SEQ_CST) : 0;
  if (!answer) answer = syscall(ASK_TRACER, (long)fault, arguments) == 1 ? 1 : 2;
  if (from) __atomic_store_n(&from->answer, answer, __ATOMIC_SEQ_CST);
  return answer == 1;
}

/* Lets the tracer count the site of this call, often enough for any space. */
static void observe(int function, word *arguments) {
  struct caller *from = caller(~(word)function);
  if (from && __atomic_add_fetch(&from->counted, 1, __ATOMIC_SEQ_CST) > MAX_COUNTED) return;
  syscall(ASK_TRACER, -1L, (long)function, arguments);
}

static void start(void);

static word call(struct symbol *symbol, word a, word b, word c, word d, word e, word f) {
  /* Constructors of other libraries run before ours. Before the environment is there, only the loader calls. */
  if (!started && environ) start();
  if (!symbol->real) resolve(symbol);
  if (!symbol->real) {
    *__errno_location() = 38;
    return (word)-1L;
  }
  if (!active || inside) return symbol->real(a, b, c, d, e, f);
  struct function *function = &functions[symbol->function];
  unsigned long number = __atomic_add_fetch(&function->count, 1, __ATOMIC_SEQ_CST);
  if (shared_counts) shared_counts[8 + symbol->function] = function->count;
  word arguments[] = {a, b, c, d, e, f};
  if (observed) observe(symbol->function, arguments);
  for (int at = 0; at < fault_count; at++) {
    struct fault *fault = &faults[at];
    if (fault->function != symbol->function) continue;
    if (fault->asks) {
      if (!is_at_site(at, arguments)) continue;
      number = __atomic_add_fetch(&fault->count, 1, __ATOMIC_SEQ_CST);
    }
    if (number < fault->first || number > fault->last) continue;
    inside = 1;
    if (function->done) symbol->real(a, b, c, d, e, f);
    report(function, number, arguments);
    inside = 0;
    if (fault->error && symbol->stream >= 0) {
      int *flags = (int *)arguments[symbol->stream];
      if (flags) *flags |= STREAM_ERROR;
    }
    if (fault->error) *__errno_location() = fault->error;
    return (word)fault->retval;
  }
  return symbol->real(a, b, c, d, e, f);
}

static long parse_number(const char **at) {
  int negative = **at == '-';
  unsigned long number = 0;
  if (negative) ++*at;
  while (**at >= '0' && **at <= '9') number = number * 10 + (unsigned long)(*(*at)++ - '0');
  if (**at == ':') ++*at;
  return negative ? -(long)number : (long)number;
}

/* Faults are FUNCTION:FIRST:LAST:RETVAL:ERRNO:ASKS;... The tracer has the same list, without those that never happen. */
static void parse_faults(const char *text) {
  while (*text && fault_count < MAX_FAULTS) {
    struct fault *fault = &faults[fault_count];
    unsigned long size = 0;
    while (text[size] && text[size] != ':') size++;
    fault->function = -1;
    for (unsigned at = 0; at < FUNCTION_COUNT; at++) {
      unsigned long same_bytes = 0;
      while (same_bytes < size && functions[at].name[same_bytes] == text[same_bytes]) same_bytes++;
      if (same_bytes == size && !functions[at].name[size]) fault->function = (int)at;
    }
    text += size + (text[size] == ':');
    fault->first = (unsigned long)parse_number(&text);
    fault->last = (unsigned long)parse_number(&text);
    fault->retval = parse_number(&text);
    fault->error = (int)parse_number(&text);
    fault->asks = (int)parse_number(&text);
    while (*text && *text != ';') text++;
    if (*text) text++;
    if (fault->function >= 0 && fault->first) fault_count++;
  }
}

/* A file with the counts of this process, which is there however it ends: eight words with the name, then counts. */
static void share_counts(void) {
  struct text path;
  if (!count_folder) return;
  path.size = 0;
  add(&path, count_folder);
  add(&path, "/counts.");
  add_number(&path, (unsigned long)syscall(SYS_GETPID), 10);
  /* One process may execute several programs. */
  add(&path, ".");
  add(&path, program);
  path.bytes[path.size] = 0;
  long file = syscall(SYS_OPEN, path.bytes, 02 | 0100 | 01000 | 02000000, 0666);
  if (file < 0) return;
  unsigned long size = (8 + FUNCTION_COUNT) * sizeof(word);
  syscall(SYS_FTRUNCATE, file, size);
  long memory = syscall(SYS_MMAP, 0, size, 3, 1, file, 0);
  syscall(SYS_CLOSE, file);
  if (memory < 0) return;
  shared_counts = (unsigned long *)memory;
  for (int at = 0; at < 63 && program[at]; at++) ((char *)shared_counts)[at] = program[at];
}

/* A new process counts its own calls. */
static void after_fork(void) {
  for (unsigned at = 0; at < FUNCTION_COUNT; at++) functions[at].count = 0;
  for (int at = 0; at < fault_count; at++) faults[at].count = 0;
  shared_counts = 0;
  share_counts();
}

static long read_file(const char *name, char *bytes, unsigned long size) {
  long file = syscall(SYS_OPEN, name, 02000000, 0);
  if (file < 0) return 0;
  long count = syscall(SYS_READ, file, bytes, size);
  syscall(SYS_CLOSE, file);
  return count > 0 ? count : 0;
}

__attribute__((constructor)) static void start(void) {
  char path[1024], words[1024];
  if (__atomic_exchange_n(&started, 1, __ATOMIC_SEQ_CST)) return;
  inside = 1;
  for (unsigned at = 0; at < SYMBOL_COUNT; at++) resolve(&symbols[at]);
  long size = syscall(SYS_READLINK, "/proc/self/exe", path, sizeof path - 1);
  path[size > 0 ? size : 0] = 0;
  const char *file = last_part(path);
  words[read_file("/proc/self/cmdline", words, sizeof words - 1)] = 0;
  const char *first = last_part(words);
  for (int at = 0; at < 63 && file[at]; at++) program[at] = file[at];
  const char *named = variable("EVERETT_PRELOAD_PROGRAMS");
  const char *shells = variable("EVERETT_PRELOAD_SHELLS");
  if (named && *named)
    active = listed(named, file) || listed(named, first);
  else
    active = !(shells && listed(shells, file));
  log_file = variable("EVERETT_PRELOAD_LOG");
  if (active) {
    count_folder = variable("EVERETT_PRELOAD_COUNTS");
    observed = variable("EVERETT_PRELOAD_OBSERVE") != 0;
    share_counts();
    const char *text = variable("EVERETT_PRELOAD_FAULTS");
    if (text) parse_faults(text);
    pthread_atfork(0, 0, after_fork);
    /* The first unwinding loads a library, which must not happen inside of a failing allocation. */
    void *frames[2];
    if (backtrace && fault_count) backtrace(frames, 2);
  }
  inside = 0;
}

#define WRAP(name, index) \
  word name(word a, word b, word c, word d, word e, word f) { return call(&symbols[index], a, b, c, d, e, f); }
