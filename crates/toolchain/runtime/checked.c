// What instrumented programs call: the memory that they may use is kept in a shadow, one byte for
// each eight, and every access asks it. The heap has gaps around its blocks and gives no address
// out twice; local variables live in frames that are kept away for a while after their function.
//
// Nothing of libc is used, and nothing here is instrumented.

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t word;

enum { SYS_WRITE = 1, SYS_MMAP = 9, SYS_MPROTECT = 10 };
enum { SYS_EXIT_GROUP = 231 };
enum { OWN_REPORT = 0x10000 + 101 };
enum { ENOMEM_NUMBER = 12, EINVAL_NUMBER = 22 };

static unsigned char *shadow_of(word address) {
  return (unsigned char *)((address >> 3) + SHADOW_START);
}

static void fill(void *to, int value, size_t size) {
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
}

static void copy(void *to, const void *from, size_t size) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static void copy_down(void *to, const void *from, size_t size) {
  char *target = to;
  const char *source = from;
  while (size--) target[size] = source[size];
}

static void say(const char *text) {
  size_t length = 0;
  while (text[length]) length++;
  system_call(SYS_WRITE, 2, (long)text, (long)length, 0, 0, 0);
}

static void say_number(word number) {
  char text[19] = "0x";
  for (int i = 0; i < 16; i++) text[2 + i] = "0123456789abcdef"[number >> (60 - 4 * i) & 15];
  text[18] = 0;
  say(text);
}

// Something is wrong, at the instruction before `place`. Everett's kernel ends the run here.
__attribute__((noreturn)) static void report(const char *kind, word address, word place) {
  system_call(OWN_REPORT, (long)kind, (long)address, (long)place, 0, 0, 0);
  say("everett: ");
  say(kind);
  say(" at address ");
  say_number(address);
  say(", by the instruction before ");
  say_number(place);
  say("\n");
  abort_process();
}

// All of the shadow can be read; a part of it can be written once something was. So its size does
// not count where memory is limited.
#define PART ((word)1 << 20)
static unsigned char writable[SHADOW_SIZE / PART / 8];

static void set_shadow(unsigned char *from, int value, size_t size) {
  if (size == 0) return;
  word first = ((word)from - SHADOW_START) / PART, last = ((word)from + size - 1 - SHADOW_START) / PART;
  for (word part = first; part <= last && part < SHADOW_SIZE / PART; part++) {
    if (writable[part / 8] >> part % 8 & 1) continue;
    system_call(SYS_MPROTECT, (long)(SHADOW_START + part * PART), PART, 3, 0, 0, 0);
    writable[part / 8] |= (unsigned char)(1 << part % 8);
  }
  fill(from, value, size);
}

static int is_bad(word address) {
  unsigned char value = *shadow_of(address);
  return value != 0 && (value > 7 || (address & 7) >= value);
}

static const char *kind_of(word address) {
  unsigned char value = *shadow_of(address);
  if (value < 8) value = *shadow_of(address + 8);
  switch (value) {
  case HEAP_FREED: return "use-after-free";
  case AFTER_RETURN: return "use-after-return";
  case AFTER_SCOPE: return "use-after-scope";
  default: return "out-of-bounds";
  }
}

// The first byte of a range that may not be used, or 0. What no address is faults by itself.
static word first_bad(word address, size_t size) {
  if (size == 0 || address >= ADDRESSES || size >= ADDRESSES - address) return 0;
  word last = address + size - 1;
  if (is_bad(address)) return address;
  for (word at = (address | 7) + 1; at <= last; at += 8) {
    if ((at & 63) == 0 && at + 63 < last && *(uint64_t *)shadow_of(at) == 0) {
      at += 56;
      continue;
    }
    if (is_bad(at)) return at;
  }
  if (is_bad(last)) {
    word at = last & ~(word)7;
    while (!is_bad(at)) at++;
    return at < address ? address : at;
  }
  return 0;
}

static void check(word address, size_t size, word place) {
  word bad = first_bad(address, size);
  if (bad) report(kind_of(bad), bad, place);
}

#define PLACE ((word)__builtin_return_address(0))

#define SIZED(n)                                                          \
  void __asan_load##n(word address) { check(address, n, PLACE); }         \
  void __asan_store##n(word address) { check(address, n, PLACE); }        \
  void __asan_report_load##n(word address) { report(kind_of(address), address, PLACE); } \
  void __asan_report_store##n(word address) { report(kind_of(address), address, PLACE); }
SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)
void __asan_loadN(word address, size_t size) { check(address, size, PLACE); }
void __asan_storeN(word address, size_t size) { check(address, size, PLACE); }
void __asan_report_load_n(word address, size_t size) { (void)size, report(kind_of(address), address, PLACE); }
void __asan_report_store_n(word address, size_t size) { (void)size, report(kind_of(address), address, PLACE); }

void *__asan_memcpy(void *to, const void *from, size_t size) {
  check((word)from, size, PLACE);
  check((word)to, size, PLACE);
  word a = (word)to, b = (word)from;
  if (a != b && a < b + size && b < a + size) report("overlapping-copy", a, PLACE);
  copy(to, from, size);
  return to;
}

void *__asan_memmove(void *to, const void *from, size_t size) {
  check((word)from, size, PLACE);
  check((word)to, size, PLACE);
  if ((word)to - (word)from < size)
    copy_down(to, from, size);
  else
    copy(to, from, size);
  return to;
}

void *__asan_memset(void *to, int value, size_t size) {
  check((word)to, size, PLACE);
  fill(to, value, size);
  return to;
}

// Marks bytes from an address that is a multiple of eight on: `size` of them may be used, and
// none behind them up to `end`.
static void mark(word start, size_t size, word end, int why) {
  set_shadow(shadow_of(start), 0, size >> 3);
  word at = start + (size & ~(word)7);
  if (size & 7) {
    set_shadow(shadow_of(at), (int)(size & 7), 1);
    at += 8;
  }
  if (at < end) set_shadow(shadow_of(at), why, (end - at) >> 3);
}

// The heap.

enum { CHUNK = 16 << 20, MAGIC_LIVE = 0x4c49, MAGIC_FREED = 0x4652 };
// Blocks have wide gaps around them for as long as there are few.
enum { FEW_BLOCKS = 4096, MANY_BLOCKS = 65536, WIDE_GAP = 65536, MIDDLE_GAP = 4096, SMALL_GAP = 256 };

// Before each block; the gap before it is larger.
struct header {
  uint64_t size;
  uint64_t magic;
};

static word chunk_at, chunk_end, blocks;

static word map_memory(size_t size) {
  long address = system_call(SYS_MMAP, 0, (long)size, 3, 0x4022, -1, 0);
  return address < 0 && address > -4096 ? 0 : (word)address;
}

static void fail(int error) { __asm__ volatile("movl %0, %%fs:52" : : "r"(error)); }

static word magic_of(struct header *header, word magic) { return (word)header << 16 | magic; }

static void *allocate(size_t size, size_t align) {
  if (size >= ADDRESSES || align >= ADDRESSES) return fail(ENOMEM_NUMBER), (void *)0;
  if (align < 16) align = 16;
  size_t before = __atomic_fetch_add(&blocks, 1, __ATOMIC_SEQ_CST);
  size_t gap = before < FEW_BLOCKS ? WIDE_GAP : before < MANY_BLOCKS ? MIDDLE_GAP : SMALL_GAP;
  size_t room = ((size + 15) & ~(size_t)15) + 2 * gap + align;
  word start;
  if (room > CHUNK / 4) {
    start = map_memory(room);
    if (!start) return fail(ENOMEM_NUMBER), (void *)0;
  } else {
    start = __atomic_fetch_add(&chunk_at, room, __ATOMIC_SEQ_CST);
    if (!start || start + room > chunk_end) {
      start = map_memory(CHUNK);
      if (!start) return fail(ENOMEM_NUMBER), (void *)0;
      set_shadow(shadow_of(start), HEAP_GAP, CHUNK >> 3);
      chunk_end = start + CHUNK;
      chunk_at = start + room;
    }
  }
  word block = (start + gap + align - 1) & ~(word)(align - 1);
  set_shadow(shadow_of(start), HEAP_GAP, (block - start) >> 3);
  mark(block, size, start + room, HEAP_GAP);
  struct header *header = (struct header *)block - 1;
  header->size = size;
  header->magic = magic_of(header, MAGIC_LIVE);
  return (void *)block;
}

static struct header *header_of(void *block, word place) {
  struct header *header = (struct header *)block - 1;
  int aligned = ((word)block & 15) == 0;
  if (aligned && header->magic == magic_of(header, MAGIC_LIVE)) return header;
  int freed = aligned && header->magic == magic_of(header, MAGIC_FREED);
  report(freed ? "double-free" : "invalid-free", (word)block, place);
}

static void release(void *block, word place) {
  if (!block) return;
  struct header *header = header_of(block, place);
  header->magic = magic_of(header, MAGIC_FREED);
  // A block without bytes has nothing that could be used.
  set_shadow(shadow_of((word)block), HEAP_FREED, (header->size + 7) >> 3);
}

static void *reallocate(void *block, size_t size, word place) {
  struct header *old = block ? header_of(block, place) : (struct header *)0;
  void *larger = allocate(size, 16);
  if (!larger || !old) return larger;
  copy(larger, block, old->size < size ? old->size : size);
  release(block, place);
  return larger;
}

static int is_power(size_t align) { return align && (align & (align - 1)) == 0; }

// The entries of the program's own functions lead here.
void *everett_checked_malloc(size_t size) { return allocate(size, 16); }
void everett_checked_free(void *block) { release(block, PLACE); }
void *everett_checked_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = ADDRESSES;
  return allocate(bytes, 16);
}
void *everett_checked_realloc(void *block, size_t size) { return reallocate(block, size, PLACE); }
void *everett_checked_reallocarray(void *block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = ADDRESSES;
  return reallocate(block, bytes, PLACE);
}
void *everett_checked_memalign(size_t align, size_t size) {
  if (!is_power(align)) return fail(EINVAL_NUMBER), (void *)0;
  return allocate(size, align);
}
void *everett_checked_valloc(size_t size) { return allocate(size, 4096); }
int everett_checked_posix_memalign(void **place, size_t align, size_t size) {
  if (!is_power(align) || align < sizeof(void *)) return EINVAL_NUMBER;
  void *block = allocate(size, align);
  if (!block) return ENOMEM_NUMBER;
  *place = block;
  return 0;
}
size_t everett_checked_usable_size(void *block) {
  return block ? header_of(block, PLACE)->size : 0;
}

// Frames of functions: each size has a ring, so that a frame comes back late.

enum { CLASSES = 11, RING = 2 << 20 };

static struct ring {
  word start;
  uint32_t next;
  unsigned char *used;
} rings[CLASSES];

static word take_frame(int class) {
  struct ring *ring = &rings[class];
  uint32_t frames = RING >> class >> 6;
  if (frames < 64) frames = 64;
  size_t size = (size_t)64 << class;
  if (!ring->start) {
    word memory = map_memory(frames * size + frames);
    if (!memory) return 0;
    ring->used = (unsigned char *)(memory + frames * size);
    ring->start = memory;
  }
  for (uint32_t tried = 0; tried < frames; tried++) {
    uint32_t at = ring->next;
    ring->next = at + 1 == frames ? 0 : at + 1;
    if (ring->used[at]) continue;
    ring->used[at] = 1;
    word frame = ring->start + at * size;
    set_shadow(shadow_of(frame), 0, size >> 3);
    return frame;
  }
  return 0;
}

static void leave_frame(int class, word frame) {
  struct ring *ring = &rings[class];
  size_t size = (size_t)64 << class;
  if (frame < ring->start) return;
  ring->used[(frame - ring->start) / size] = 0;
  set_shadow(shadow_of(frame), AFTER_RETURN, size >> 3);
}

#define FRAMES(n)                                                                                 \
  word __asan_stack_malloc_##n(size_t size) { return (void)size, take_frame(n); }                 \
  word __asan_stack_malloc_always_##n(size_t size) { return (void)size, take_frame(n); }          \
  void __asan_stack_free_##n(word frame, size_t size) { (void)size, leave_frame(n, frame); }
FRAMES(0)
FRAMES(1)
FRAMES(2)
FRAMES(3)
FRAMES(4)
FRAMES(5)
FRAMES(6)
FRAMES(7)
FRAMES(8)
FRAMES(9)
FRAMES(10)

#define SHADOW_FILLER(name, value) \
  void __asan_set_shadow_##name(word shadow, size_t size) { set_shadow((unsigned char *)shadow, value, size); }
SHADOW_FILLERS(SHADOW_FILLER)

void __asan_poison_stack_memory(word start, size_t size) {
  set_shadow(shadow_of(start), AFTER_SCOPE, (size + 7) >> 3);
}
void __asan_unpoison_stack_memory(word start, size_t size) { mark(start, size, 0, 0); }
void __asan_alloca_poison(word start, size_t size) {
  set_shadow(shadow_of(start - 32), ALLOCA_LEFT, 4);
  word end = start + ((size + 31) & ~(size_t)31) + 32;
  mark(start, size, end, ALLOCA_RIGHT);
}
void __asan_allocas_unpoison(word top, word bottom) {
  if (top && top < bottom) set_shadow(shadow_of(top), 0, (bottom - top) >> 3);
}
// The stack is left in a way that the functions on it do not see.
void __asan_handle_no_return(void) {
  enum { REACH = 1 << 20 };
  word here = (word)__builtin_frame_address(0) & ~(word)7;
  for (word at = here; at < here + REACH && at < ADDRESSES; at += 8) {
    unsigned char value = *shadow_of(at);
    if (value == HEAP_GAP || value == HEAP_FREED) break;
    if (value) *shadow_of(at) = 0;
  }
}

// Programs can ask themselves.
void everett_checked_access(const void *address, size_t size) { check((word)address, size, PLACE); }

struct global {
  word start;
  size_t size;
  size_t with_gap;
  word unused[5];
};

void __asan_register_globals(struct global *globals, size_t count) {
  for (size_t at = 0; at < count; at++) {
    word end = globals[at].start + globals[at].with_gap;
    mark(globals[at].start, globals[at].size, end, GLOBAL_GAP);
  }
}
void __asan_unregister_globals(struct global *globals, size_t count) { (void)globals, (void)count; }
void __asan_register_elf_globals(word *flag, struct global *start, struct global *end) {
  if (*flag) return;
  *flag = 1;
  __asan_register_globals(start, (size_t)(end - start));
}
void __asan_unregister_elf_globals(word *flag, void *start, void *end) {
  (void)flag, (void)start, (void)end;
}
void __asan_before_dynamic_init(const char *module) { (void)module; }
void __asan_after_dynamic_init(void) {}
void __asan_init(void) {}
void __asan_version_mismatch_check_v8(void) {}
int __asan_option_detect_stack_use_after_return = 1;

// Before anything of the program.
__attribute__((used)) static void prepare(void) {
  enum { MAP_FIXED_NUMBER = 0x10 };
  long shadow = system_call(SYS_MMAP, SHADOW_START, SHADOW_SIZE, 1, 0x4022 | MAP_FIXED_NUMBER, -1, 0);
  if (shadow == SHADOW_START) return;
  say("everett: there is no room for the shadow of memory\n");
  for (;;) system_call(SYS_EXIT_GROUP, 134, 0, 0, 0, 0, 0);
}

__asm__(".text\n"
        ".globl everett_checked_start\n"
        ".type everett_checked_start, @function\n"
        "everett_checked_start:\n"
        "  push %rdx\n"
        "  call prepare\n"
        "  pop %rdx\n"
        "  jmp _start\n");
