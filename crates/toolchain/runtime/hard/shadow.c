// The runtime of hardened builds: the shadow of memory, what instrumented frames and globals call, and how a program is
// stopped. It is for production: it works with threads, fork, signals and longjmp, keeps little memory, and is machine
// code, optimised. Uses nothing of libc, and nothing here is instrumented.

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t word;

enum { SYS_WRITE = 1, SYS_OPEN = 2, SYS_CLOSE = 3, SYS_MMAP = 9, SYS_MPROTECT = 10, SYS_MUNMAP = 11 };
enum { SYS_MADVISE = 28 };
enum { SYS_FUTEX = 202 };
enum { ENOMEM_NUMBER = 12, EINVAL_NUMBER = 22 };
enum { PAGE = 4096, DONTNEED = 4, DONTDUMP = 16 };

static inline unsigned char *shadow_of(word address) { return (unsigned char *)((address >> 3) + SHADOW_START); }

static inline void fill(void *to, int value, size_t size) {
  if (size <= 64) {
    unsigned char *at = to;
    while (size--) {
      *at++ = (unsigned char)value;
      __asm__ volatile("" : : : "memory");
    }
    return;
  }
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
}

static inline void copy(void *to, const void *from, size_t size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

// All of memory from `start` on may be used. Whole pages of the shadow are given back, so that this costs no memory.
static void clear_shadow(word start, size_t size) {
  if (size == 0 || start >= ADDRESSES || size > ADDRESSES - start) return;
  word first = (word)shadow_of(start), end = (word)shadow_of(start + size - 1) + 1;
  word pages = (first + PAGE - 1) & ~(word)(PAGE - 1), pages_end = end & ~(word)(PAGE - 1);
  if (pages >= pages_end) {
    fill((void *)first, 0, end - first);
    return;
  }
  fill((void *)first, 0, pages - first);
  system_call(SYS_MADVISE, (long)pages, (long)(pages_end - pages), DONTNEED, 0, 0, 0);
  fill((void *)pages_end, 0, end - pages_end);
}

// Marks bytes from an address that is a multiple of eight on: `size` of them may be used, and none behind them up to
// `end`.
static void mark(word start, size_t size, word end, int why) {
  fill(shadow_of(start), 0, size >> 3);
  word at = start + (size & ~(word)7);
  if (size & 7) {
    *shadow_of(at) = (unsigned char)(size & 7);
    at += 8;
  }
  if (at < end) fill(shadow_of(at), why, (end - at) >> 3);
}

// Stopping.

struct site {
  const char *file;
  const char *function;
  uint32_t line;
  uint32_t kind;
};

// What checks are about, by number; the instrumenter has the same list.
static const char *const kinds[] = {
    "memory",       "memory",           "memory",          "memory", "index out of bounds",
    "failed check", "failed assertion", "signed overflow", "",       "",
};

// The program's own table; a build without checks has none.
extern const struct site everett_hard_sites[] __attribute__((weak));
extern const char everett_hard_profile[] __attribute__((weak));
extern const uint64_t everett_hard_profile_size __attribute__((weak));

struct text {
  size_t length;
  char bytes[1024];
};

static void add(struct text *text, const char *more) {
  while (*more && text->length < sizeof text->bytes) text->bytes[text->length++] = *more++;
}

static void add_number(struct text *text, uint64_t number, unsigned base) {
  char digits[24];
  int at = sizeof digits;
  digits[--at] = 0;
  do digits[--at] = "0123456789abcdef"[number % base];
  while (number /= base);
  add(text, digits + at);
}

static void add_site(struct text *text, uint32_t number) {
  const struct site *site = &everett_hard_sites[number];
  add(text, " at ");
  add(text, site->file);
  add(text, ":");
  add_number(text, site->line, 10);
  add(text, " in ");
  add(text, site->function);
}

// Says why, and ends the process.
__attribute__((noreturn)) static void die(struct text *text) {
  add(text, "\n");
  system_call(SYS_WRITE, 2, (long)text->bytes, (long)text->length, 0, 0, 0);
  abort_process();
}

static int is_bad_byte(word address) {
  unsigned char value = *shadow_of(address);
  return value != 0 && (value > 7 || (address & 7) >= value);
}

// The first byte of a range that may not be used, or 0. What no address is faults by itself.
static word first_bad(word address, size_t size) {
  if (size == 0 || address >= ADDRESSES || size >= ADDRESSES - address) return 0;
  word last = address + size - 1;
  if (is_bad_byte(address)) return address;
  for (word at = (address | 7) + 1; at <= last; at += 8) {
    if ((at & 63) == 0 && at + 63 < last && *(uint64_t *)shadow_of(at) == 0) {
      at += 56;
      continue;
    }
    if (is_bad_byte(at)) return at;
  }
  if (!is_bad_byte(last)) return 0;
  word at = last & ~(word)7;
  while (!is_bad_byte(at)) at++;
  return at < address ? address : at;
}

__attribute__((noreturn)) void everett_hard_bad(uint32_t site, word address, word size, int is_write) {
  word bad = first_bad(address, size);
  if (!bad) bad = address;
  unsigned char value = *shadow_of(bad);
  if (value < 8) value = *shadow_of(bad + 8);
  int freed = value == HEAP_FREED, returned = value == AFTER_RETURN || value == AFTER_SCOPE;
  struct text text = {0};
  add(&text, "everett: stopped: ");
  add(&text, freed ? "use after free: " : returned ? "use after scope: " : "out of bounds: ");
  add(&text, is_write ? "write of " : "read of ");
  add_number(&text, size, 10);
  add(&text, size == 1 ? " byte" : " bytes");
  add_site(&text, site);
  add(&text, ", address 0x");
  add_number(&text, bad, 16);
  die(&text);
}

__attribute__((noreturn)) void everett_hard_stop(uint32_t site) {
  struct text text = {0};
  add(&text, "everett: stopped: ");
  add(&text, kinds[everett_hard_sites[site].kind]);
  add_site(&text, site);
  die(&text);
}

// A check of the program's own that shares its end with others.
__attribute__((noreturn)) void everett_hard_trapped(int reason) {
  struct text text = {0};
  add(&text, "everett: stopped: failed check, reason ");
  add_number(&text, (uint64_t)(reason & 255), 10);
  die(&text);
}

__attribute__((noreturn)) static void wrong_free(const char *kind, word address) {
  struct text text = {0};
  add(&text, "everett: stopped: ");
  add(&text, kind);
  add(&text, " of address 0x");
  add_number(&text, address, 16);
  die(&text);
}

void everett_hard_range(uint32_t site, const void *start, size_t size, int is_write) {
  if (first_bad((word)start, size)) everett_hard_bad(site, (word)start, size, is_write);
}

// Frames.

#define SHADOW_FILLER(name, value) \
  void __asan_set_shadow_##name(word shadow, size_t size) { fill((void *)shadow, value, size); }
SHADOW_FILLERS(SHADOW_FILLER)

void __asan_poison_stack_memory(word start, size_t size) { fill(shadow_of(start), AFTER_SCOPE, (size + 7) >> 3); }
void __asan_unpoison_stack_memory(word start, size_t size) { mark(start, size, 0, 0); }
void __asan_alloca_poison(word start, size_t size) {
  fill(shadow_of(start - 32), ALLOCA_LEFT, 4);
  mark(start, size, start + ((size + 31) & ~(size_t)31) + 32, ALLOCA_RIGHT);
}
void __asan_allocas_unpoison(word top, word bottom) {
  if (top && top < bottom) fill(shadow_of(top), 0, (bottom - top) >> 3);
}

// Where the first thread's stack begins.
static word stack_start;

static int is_of_other_memory(unsigned char value) {
  return value == HEAP_GAP || value == HEAP_FREED || value == GLOBAL_GAP;
}

// Clears what abandoned frames left in the shadow of a part of a stack, up to memory of another kind. Returns whether
// there was none.
static int leave_frames(word from, word to) {
  from &= ~(word)7;
  for (word at = from; at < to;) {
    if ((at & 63) == 0 && *(uint64_t *)shadow_of(at) == 0) {
      at += 64;
      continue;
    }
    unsigned char *value = shadow_of(at);
    if (is_of_other_memory(*value)) return 0;
    if (*value) *value = 0;
    at += 8;
  }
  return 1;
}

// Does so below an address.
static void leave_frames_below(word start, size_t reach) {
  word end = start > reach ? start - reach : 0;
  for (word at = start & ~(word)7; at > end;) {
    if ((at & 63) == 0 && *(uint64_t *)shadow_of(at - 64) == 0) {
      at -= 64;
      continue;
    }
    at -= 8;
    unsigned char *value = shadow_of(at);
    if (is_of_other_memory(*value)) return;
    if (*value) *value = 0;
  }
}

// How far the stack of another thread is looked at.
enum { REACH = 1 << 20 };

// The stack is about to be left in a way that the functions on it do not see, to somewhere above. Calls of this before
// jumps, and before what ends the process, are removed.
void __asan_handle_no_return(void) {
  word here = (word)__builtin_frame_address(0);
  word end = here + REACH;
  if (here < stack_start && stack_start - here < (word)1 << 30) end = stack_start;
  leave_frames(here, end < ADDRESSES ? end : ADDRESSES);
}

// longjmp says where it goes: frames above keep their red zones. If that is on another stack, a signal handler is left:
// both stacks have abandoned frames. Blocks between the stacks say that they are two.
static void before_jump(word target) {
  word here = (word)__builtin_frame_address(0);
  if (target > here && target - here < (word)1 << 30) {
    if (leave_frames(here, target)) return;
  } else {
    leave_frames(here, here + REACH);
  }
  leave_frames_below(target, REACH);
}

enum { SAVED_STACK_POINTER = 6 };
#define LEAVING(name)                                                        \
  __attribute__((noreturn)) void __real_##name(word *place, int value);      \
  __attribute__((noreturn)) void __wrap_##name(word *place, int value) {     \
    before_jump(place[SAVED_STACK_POINTER]);                                 \
    __real_##name(place, value);                                             \
  }
LEAVING(longjmp)
LEAVING(_longjmp)
LEAVING(siglongjmp)

// An exception leaves frames, too: those that have nothing to clean up are left unseen. Where the program throws, the
// instrumentation calls the function above; here are exceptions that libraries throw. Neither registers nor the stack
// change, so that unwinding begins at the caller. The reference is weak, because C programs have no unwinder.
#define THROWING(name)                                  \
  __asm__(".section .text.__wrap_" #name ",\"ax\",@progbits\n" \
          ".weak __real_" #name "\n"                    \
          ".globl __wrap_" #name "\n"                   \
          ".type __wrap_" #name ", @function\n"         \
          "__wrap_" #name ":\n"                         \
          "  push %rdi\n"                               \
          "  push %rsi\n"                               \
          "  push %rdx\n"                               \
          "  call __asan_handle_no_return\n"            \
          "  pop %rdx\n"                                \
          "  pop %rsi\n"                                \
          "  pop %rdi\n"                                \
          "  jmp __real_" #name "\n"                    \
          ".text\n");
THROWING(_Unwind_RaiseException)
THROWING(_Unwind_Resume_or_Rethrow)
THROWING(_Unwind_ForcedUnwind)

// New memory may have been a thread's stack that was left in the middle.
#define MAPPING(name)                                                                                         \
  void *__real_##name(void *start, size_t size, int protection, int flags, int file, long offset);            \
  void *__wrap_##name(void *start, size_t size, int protection, int flags, int file, long offset) {           \
    void *memory = __real_##name(start, size, protection, flags, file, offset);                               \
    if (memory != (void *)-1) clear_shadow((word)memory, size);                                               \
    return memory;                                                                                            \
  }
MAPPING(mmap)
MAPPING(__mmap)

// Globals.

struct global {
  word start;
  size_t size;
  size_t with_gap;
  word unused[5];
};

void __asan_register_globals(struct global *globals, size_t count) {
  for (size_t at = 0; at < count; at++)
    mark(globals[at].start, globals[at].size, globals[at].start + globals[at].with_gap, GLOBAL_GAP);
}
void __asan_unregister_globals(struct global *globals, size_t count) { (void)globals, (void)count; }
void __asan_register_elf_globals(word *flag, struct global *start, struct global *end) {
  if (*flag) return;
  *flag = 1;
  __asan_register_globals(start, (size_t)(end - start));
}
void __asan_unregister_elf_globals(word *flag, void *start, void *end) { (void)flag, (void)start, (void)end; }
void __asan_before_dynamic_init(const char *module) { (void)module; }
void __asan_after_dynamic_init(void) {}
void __asan_init(void) {}
void __asan_version_mismatch_check_v8(void) {}
int __asan_option_detect_stack_use_after_return = 0;

// The start.

uint64_t *everett_hard_counters;

__attribute__((noreturn)) static void refuse(const char *why) {
  struct text text = {0};
  add(&text, "everett: ");
  add(&text, why);
  die(&text);
}

static void prepare_decisions(word stack);

// Before anything of the program.
__attribute__((used)) static void everett_hard_prepare(word stack) {
  enum { MAP_FIXED_NUMBER = 0x10, NO_RESERVE = 0x4022, SHARED = 1, READ_WRITE = 3, OPEN_READ_WRITE = 2 };
  stack_start = stack;
  prepare_decisions(stack);
  long shadow = system_call(SYS_MMAP, SHADOW_START, SHADOW_SIZE, READ_WRITE, NO_RESERVE | MAP_FIXED_NUMBER, -1, 0);
  if (shadow != SHADOW_START)
    refuse("no address space for the shadow of memory: lift the limit (ulimit -v), and allow overcommitment");
  system_call(SYS_MADVISE, SHADOW_START, SHADOW_SIZE, DONTDUMP, 0, 0, 0);
  if (!everett_hard_profile) return;
  long file = system_call(SYS_OPEN, (long)everett_hard_profile, OPEN_READ_WRITE, 0, 0, 0, 0);
  long counters = system_call(SYS_MMAP, 0, (long)everett_hard_profile_size, READ_WRITE, SHARED, file, 0);
  if (file < 0 || (counters < 0 && counters > -PAGE)) refuse("the file of the profile cannot be opened");
  system_call(SYS_CLOSE, file, 0, 0, 0, 0, 0);
  everett_hard_counters = (uint64_t *)counters;
}

__asm__(".text\n"
        ".globl everett_hard_start\n"
        ".type everett_hard_start, @function\n"
        "everett_hard_start:\n"
        "  mov %rsp, %rdi\n"
        "  push %rdx\n"
        "  push %rdx\n" // Calls are made with the stack at a multiple of 16.
        "  call everett_hard_prepare\n"
        "  pop %rdx\n"
        "  pop %rdx\n"
        "  jmp _start\n");
