// What programs call that know which of their values were written: a shadow has a bit for each bit of memory, set
// where nobody has written it. The instrumentation keeps it up to date; here are blocks of the heap, which are new,
// copies, and what happens where a program decides on what was never written.
//
// Nothing of libc is used, and nothing here is instrumented.

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t word;

enum { SYS_WRITE = 1, SYS_MMAP = 9 };
enum { SYS_ARCH_PRCTL = 158, SYS_EXIT_GROUP = 231 };
enum { OWN_REPORT = 0x10000 + 101 };
enum { ENOMEM_NUMBER = 12, EINVAL_NUMBER = 22 };

#define SHADOW 0x500000000000ul
#define ADDRESSES 0x800000000000ul

// Parameters, results and further arguments are handed over here, beside the real ones.
__thread uint64_t __msan_param_tls[100] __attribute__((tls_model("initial-exec")));
__thread uint32_t __msan_param_origin_tls[200] __attribute__((tls_model("initial-exec")));
__thread uint64_t __msan_retval_tls[100] __attribute__((tls_model("initial-exec")));
__thread uint32_t __msan_retval_origin_tls __attribute__((tls_model("initial-exec")));
__thread uint64_t __msan_va_arg_tls[100] __attribute__((tls_model("initial-exec")));
__thread uint32_t __msan_va_arg_origin_tls[200] __attribute__((tls_model("initial-exec")));
__thread uint64_t __msan_va_arg_overflow_size_tls __attribute__((tls_model("initial-exec")));
__thread uint32_t __msan_origin_tls __attribute__((tls_model("initial-exec")));

static void *shadow_of(const void *address) { return (void *)((word)address ^ SHADOW); }

static void fill(void *to, int value, size_t size) {
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
}

static void copy(void *to, const void *from, size_t size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static void copy_any_way(void *to, const void *from, size_t size) {
  char *target = to;
  const char *source = from;
  if ((word)to - (word)from >= size) return copy(to, from, size);
  while (size--) target[size] = source[size];
}

static void say(const char *text) {
  size_t length = 0;
  while (text[length]) length++;
  system_call(SYS_WRITE, 2, (long)text, (long)length, 0, 0, 0);
}

__attribute__((noreturn)) static void report(word place) {
  system_call(OWN_REPORT, (long)"uninitialised", 0, (long)place, 0, 0, 0);
  // The debug information of the program has the line of this address.
  char digits[] = "0x0000000000000000\n";
  for (int at = 17; at > 1; at--, place >>= 4) digits[at] = "0123456789abcdef"[place & 15];
  say("everett: stopped: uninitialised: the program decides on what was never written, before ");
  say(digits);
  abort_process();
}

#define PLACE ((word)__builtin_return_address(0))

void __msan_warning(void) { report(PLACE); }
void __msan_warning_noreturn(void) { report(PLACE); }
void __msan_warning_with_origin(uint32_t origin) { (void)origin, report(PLACE); }
void __msan_warning_with_origin_noreturn(uint32_t origin) { (void)origin, report(PLACE); }

#define SIZED(n, type)                                                    \
  void __msan_maybe_warning_##n(type shadow, uint32_t origin) {           \
    (void)origin;                                                         \
    if (shadow) report(PLACE);                                            \
  }                                                                       \
  void __msan_maybe_store_origin_##n(type shadow, void *at, uint32_t origin) { (void)shadow, (void)at, (void)origin; }
SIZED(1, uint8_t)
SIZED(2, uint16_t)
SIZED(4, uint32_t)
SIZED(8, uint64_t)
void __msan_maybe_warning_N(const unsigned char *shadow, uint64_t size, uint32_t origin) {
  (void)origin;
  while (size--)
    if (shadow[size]) report(PLACE);
}

void *__msan_memcpy(void *to, const void *from, size_t size) {
  copy(to, from, size);
  copy(shadow_of(to), shadow_of(from), size);
  return to;
}
void *__msan_memmove(void *to, const void *from, size_t size) {
  copy_any_way(to, from, size);
  copy_any_way(shadow_of(to), shadow_of(from), size);
  return to;
}
void *__msan_memset(void *to, int value, size_t size) {
  fill(to, value, size);
  fill(shadow_of(to), 0, size);
  return to;
}

void __msan_poison_stack(void *start, size_t size) { fill(shadow_of(start), 0xff, size); }
void __msan_unpoison(const void *start, size_t size) { fill(shadow_of(start), 0, size); }
void __msan_set_alloca_origin_no_descr(void *at, uint64_t size, uint32_t *id) { (void)at, (void)size, (void)id; }
void __msan_set_alloca_origin_with_descr(void *at, uint64_t size, uint32_t *id, char *name) {
  (void)at, (void)size, (void)id, (void)name;
}
uint32_t __msan_chain_origin(uint32_t origin) { return origin; }
void __msan_init(void) {}

// The heap: blocks are not used again.

enum { CHUNK = 16 << 20 };

struct header {
  uint64_t size;
  uint64_t unused;
};

static word chunk_at, chunk_end;

static void fail(int error) { __asm__ volatile("movl %0, %%fs:52" : : "r"(error)); }

static word map_memory(size_t size) {
  long address = system_call(SYS_MMAP, 0, (long)size, 3, 0x4022, -1, 0);
  return address < 0 && address > -4096 ? 0 : (word)address;
}

static void *allocate(size_t size, size_t align, int written) {
  if (size >= ADDRESSES || align >= ADDRESSES) return fail(ENOMEM_NUMBER), (void *)0;
  if (align < 16) align = 16;
  size_t room = ((size + 15) & ~(size_t)15) + sizeof(struct header) + align;
  word start;
  if (room > CHUNK / 4) {
    start = map_memory(room);
    if (!start) return fail(ENOMEM_NUMBER), (void *)0;
  } else {
    start = __atomic_fetch_add(&chunk_at, room, __ATOMIC_SEQ_CST);
    if (!start || start + room > chunk_end) {
      start = map_memory(CHUNK);
      if (!start) return fail(ENOMEM_NUMBER), (void *)0;
      chunk_end = start + CHUNK;
      chunk_at = start + room;
    }
  }
  word block = (start + sizeof(struct header) + align - 1) & ~(word)(align - 1);
  ((struct header *)block - 1)->size = size;
  fill(shadow_of((void *)block), written ? 0 : 0xff, size);
  return (void *)block;
}

static size_t size_of(void *block) { return ((struct header *)block - 1)->size; }

static void *reallocate(void *block, size_t size) {
  void *larger = allocate(size, 16, 0);
  if (!larger || !block) return larger;
  size_t kept = size_of(block) < size ? size_of(block) : size;
  copy(larger, block, kept);
  copy(shadow_of(larger), shadow_of(block), kept);
  return larger;
}

// What a function returns is written, whatever was returned before.
#define RETURNS (__msan_retval_tls[0] = 0)

// The entries of the program's own functions lead here.
void *everett_checked_malloc(size_t size) { return RETURNS, allocate(size, 16, 0); }
void everett_checked_free(void *block) { (void)block; }
void *everett_checked_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = ADDRESSES;
  return RETURNS, allocate(bytes, 16, 1);
}
void *everett_checked_realloc(void *block, size_t size) { return RETURNS, reallocate(block, size); }
void *everett_checked_reallocarray(void *block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = ADDRESSES;
  return RETURNS, reallocate(block, bytes);
}
static int is_power(size_t align) { return align && (align & (align - 1)) == 0; }
void *everett_checked_memalign(size_t align, size_t size) {
  RETURNS;
  if (!is_power(align)) return fail(EINVAL_NUMBER), (void *)0;
  return allocate(size, align, 0);
}
void *everett_checked_valloc(size_t size) { return RETURNS, allocate(size, 4096, 0); }
int everett_checked_posix_memalign(void **place, size_t align, size_t size) {
  RETURNS;
  if (!is_power(align) || align < sizeof(void *)) return EINVAL_NUMBER;
  void *block = allocate(size, align, 0);
  if (!block) return ENOMEM_NUMBER;
  *place = block;
  fill(shadow_of(place), 0, sizeof *place);
  return 0;
}
size_t everett_checked_usable_size(void *block) { return RETURNS, block ? size_of(block) : 0; }
void everett_checked_access(const void *address, size_t size) { (void)address, (void)size; }

static int map_shadow(word start, size_t size) {
  enum { FIXED = 0x10 };
  return system_call(SYS_MMAP, (long)start, (long)size, 3, 0x4022 | FIXED, -1, 0) == (long)start;
}

// Thread-local data of the first thread, until libc makes room for it: its start is instrumented too.
static char early[1 << 20] __attribute__((aligned(64)));
#define early_end (early + sizeof early - 4096)

// Before anything of the program: the shadow of low addresses, where programs lie, and of high ones, where the
// kernel puts memory.
__attribute__((used)) static void prepare(void) {
  enum { SET_FS = 0x1002 };
  *(char **)early_end = early_end;
  system_call(SYS_ARCH_PRCTL, SET_FS, (long)early_end, 0, 0, 0, 0);
  if (map_shadow(0x500000000000ul, 0x10000000000ul) && map_shadow(0x200000000000ul, 0x100000000000ul)) return;
  say("everett: there is no room for the shadow of memory\n");
  for (;;) system_call(SYS_EXIT_GROUP, 134, 0, 0, 0, 0, 0);
}

__asm__(".text\n"
        ".globl everett_initialised_start\n"
        ".type everett_initialised_start, @function\n"
        "everett_initialised_start:\n"
        "  push %rdx\n"
        "  call prepare\n"
        "  pop %rdx\n"
        "  jmp _start\n");
