// The heap of hardened builds. Blocks have gaps around them; freed blocks wait in a quarantine of bounded size before
// they are given out again. Several arenas, each with a lock, serve threads.
//
// A block is: header (part of the gap before it), the user's bytes, a gap. The free list and the quarantine are chained
// through the user's bytes.

enum { ARENAS = 8, CLASSES = 64, LARGE = 255, CHUNK = 1 << 20, LARGEST = 256 << 10, HEADER = 16 };
enum { LARGE_WAITING = 16 };
enum { STATE_LIVE = 0x4c56, STATE_FREED = 0x4652 };

// How many bytes of freed blocks an arena keeps.
enum { QUARANTINE = 2 << 20 };

struct header {
  uint64_t size;
  uint32_t offset; // Of the user's bytes in the block.
  uint8_t class;
  uint8_t arena;
  uint16_t state;
};

struct waiting {
  struct waiting *next;
};

struct arena {
  _Alignas(64) int lock;
  word chunk, chunk_end;
  word free[CLASSES];
  struct waiting *oldest, *newest;
  uint64_t waiting;
};

static struct arena arenas[ARENAS];
static int next_arena;
static __thread int own_arena;

// Large blocks that were freed and cannot be accessed.
static struct {
  int lock;
  unsigned at;
  word start[LARGE_WAITING];
  size_t size[LARGE_WAITING];
} large;

static void take(int *lock) {
  enum { WAIT_PRIVATE = 128 };
  int free = 0;
  if (__atomic_compare_exchange_n(lock, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
  while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE) != 0)
    system_call(SYS_FUTEX, (long)lock, WAIT_PRIVATE, 2, 0, 0, 0);
}

static void give(int *lock) {
  enum { WAKE_PRIVATE = 129 };
  if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) == 2) system_call(SYS_FUTEX, (long)lock, WAKE_PRIVATE, 1, 0, 0, 0);
}

// Around fork, musl calls this: with -1 before it, then with 0 in the parent and 1 in the child.
void __malloc_atfork(int who) {
  for (int at = 0; at < ARENAS; at++) {
    if (who < 0)
      take(&arenas[at].lock);
    else
      give(&arenas[at].lock);
  }
  if (who < 0)
    take(&large.lock);
  else
    give(&large.lock);
}

static int arena_of_thread(void) {
  if (own_arena == 0) own_arena = 1 + (__atomic_fetch_add(&next_arena, 1, __ATOMIC_RELAXED) & (ARENAS - 1));
  return own_arena - 1;
}

int *__errno_location(void);

static void *fail(int error) {
  *__errno_location() = error;
  return 0;
}

// Sizes of blocks: multiples of 32 up to 1024, then four between powers of two.
static unsigned class_of(size_t room) {
  if (room <= 1024) return (unsigned)((room + 31) / 32) - 1;
  unsigned power = 63 - (unsigned)__builtin_clzl(room - 1);
  return 32 + (power - 10) * 4 + (unsigned)((room - 1) >> (power - 2) & 3);
}

static size_t room_of(unsigned class) {
  if (class < 32) return (class + 1) * 32;
  unsigned power = 10 + (class - 32) / 4;
  return ((size_t)1 << power) + (((class - 32) % 4 + 1) << (power - 2));
}

// The gap behind a block; the header of the next one adds to it.
static size_t gap_of(size_t size) {
  size_t gap = size / 8;
  return gap < 16 ? 16 : gap > 1024 ? 1024 : (gap + 15) & ~(size_t)15;
}

static word map_memory(size_t size) {
  enum { READ_WRITE = 3, PRIVATE_ANONYMOUS = 0x22 };
  long address = system_call(SYS_MMAP, 0, (long)size, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
  if (address < 0 && address > -PAGE) return 0;
  clear_shadow((word)address, size);
  return (word)address;
}

static struct header *header_of(void *block) { return (struct header *)block - 1; }

static void write_header(word block, size_t size, word start, unsigned class, unsigned arena) {
  struct header *header = header_of((void *)block);
  header->size = size;
  header->offset = (uint32_t)(block - start);
  header->class = (uint8_t)class;
  header->arena = (uint8_t)arena;
  __atomic_store_n(&header->state, STATE_LIVE, __ATOMIC_RELEASE);
}

// Large blocks have pages of their own, the last of which cannot be accessed.
static void *allocate_large(size_t size, size_t align) {
  if (align < PAGE) align = PAGE;
  size_t body = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
  if (body < size || align > LARGEST * 16ul || body + 2 * align < body) return fail(ENOMEM_NUMBER);
  size_t all = align + body + PAGE;
  word start = map_memory(all);
  if (!start) return fail(ENOMEM_NUMBER);
  word block = (start + HEADER + align - 1) & ~(word)(align - 1);
  // What alignment leaves over is given back, so that the mapping's size follows from the block's.
  word used = block - PAGE;
  if (used > start) system_call(SYS_MUNMAP, (long)start, (long)(used - start), 0, 0, 0, 0);
  word end = block + body + PAGE;
  if (end < start + all) system_call(SYS_MUNMAP, (long)end, (long)(start + all - end), 0, 0, 0, 0);
  system_call(SYS_MPROTECT, (long)(block + body), PAGE, 0, 0, 0, 0);
  fill(shadow_of(used), HEAP_GAP, PAGE >> 3);
  word last = block + (size & ~(word)7);
  mark(last, size & 7, block + body + PAGE, HEAP_GAP);
  write_header(block, size, used, LARGE, 0);
  return (void *)block;
}

static word take_block(unsigned arena, unsigned class) {
  struct arena *own = &arenas[arena];
  size_t room = room_of(class);
  take(&own->lock);
  word start = own->free[class];
  if (start) {
    own->free[class] = *(word *)start;
  } else {
    if (own->chunk_end - own->chunk < room) {
      word chunk = map_memory(CHUNK);
      if (!chunk) {
        give(&own->lock);
        return 0;
      }
      fill(shadow_of(chunk), HEAP_GAP, CHUNK >> 3);
      own->chunk = chunk;
      own->chunk_end = chunk + CHUNK;
    }
    start = own->chunk;
    own->chunk += room;
  }
  give(&own->lock);
  return start;
}

static void *allocate(size_t size, size_t align) {
  if (size >= ADDRESSES || align >= ADDRESSES) return fail(ENOMEM_NUMBER);
  size_t padding = align <= HEADER ? 0 : align;
  size_t room = HEADER + padding + ((size + 15) & ~(size_t)15) + gap_of(size);
  if (room > LARGEST) return allocate_large(size, align);
  unsigned class = class_of(room), arena = (unsigned)arena_of_thread();
  word start = take_block(arena, class);
  if (!start) return fail(ENOMEM_NUMBER);
  word block = start + HEADER;
  if (padding) {
    block = (block + align - 1) & ~(word)(align - 1);
    fill(shadow_of(start), HEAP_GAP, (block - start) >> 3);
  }
  mark(block, size, start + room_of(class), HEAP_GAP);
  write_header(block, size, start, class, arena);
  return (void *)block;
}

// Whether memory before an address is the header of a block: only headers and gaps are marked so.
static struct header *live_header(void *block, const char *operation) {
  struct header *header = header_of(block);
  int is_header = ((word)block & 15) == 0 && (word)block < ADDRESSES && *shadow_of((word)header) == HEAP_GAP;
  if (!is_header) wrong_free(operation, (word)block);
  uint16_t state = __atomic_load_n(&header->state, __ATOMIC_ACQUIRE);
  if (state == STATE_LIVE) return header;
  wrong_free(state == STATE_FREED ? "double free" : operation, (word)block);
}

// A large block cannot be accessed after it was freed, for as long as it waits.
static void release_large(void *block, struct header *header) {
  word start = (word)block - PAGE;
  size_t size = PAGE + ((header->size + PAGE - 1) & ~(size_t)(PAGE - 1)) + PAGE;
  system_call(SYS_MADVISE, (long)block, (long)(size - 2 * PAGE), DONTNEED, 0, 0, 0);
  system_call(SYS_MPROTECT, (long)block, (long)(size - PAGE), 0, 0, 0, 0);
  take(&large.lock);
  unsigned at = large.at++ % LARGE_WAITING;
  word old = large.start[at];
  size_t old_size = large.size[at];
  large.start[at] = start;
  large.size[at] = size;
  give(&large.lock);
  if (!old) return;
  clear_shadow(old, old_size);
  system_call(SYS_MUNMAP, (long)old, (long)old_size, 0, 0, 0, 0);
}

// Frees the block that has waited longest.
static void end_waiting(struct arena *arena) {
  void *block = arena->oldest;
  arena->oldest = arena->oldest->next;
  if (!arena->oldest) arena->newest = 0;
  struct header *header = header_of(block);
  arena->waiting -= room_of(header->class);
  word start = (word)block - header->offset;
  header->state = 0;
  unsigned class = header->class;
  *(word *)start = arena->free[class];
  arena->free[class] = start;
}

static void release(void *block) {
  if (!block) return;
  struct header *header = live_header(block, "invalid free");
  uint16_t live = STATE_LIVE;
  if (!__atomic_compare_exchange_n(&header->state, &live, STATE_FREED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    wrong_free("double free", (word)block);
  if (header->class == LARGE) {
    release_large(block, header);
    return;
  }
  fill(shadow_of((word)block), HEAP_FREED, (header->size + 7) >> 3);
  struct arena *arena = &arenas[header->arena];
  struct waiting *waiting = block;
  take(&arena->lock);
  waiting->next = 0;
  if (arena->newest)
    arena->newest->next = waiting;
  else
    arena->oldest = waiting;
  arena->newest = waiting;
  arena->waiting += room_of(header->class);
  while (arena->waiting > QUARANTINE) end_waiting(arena);
  give(&arena->lock);
}

// A program with an allocator of its own keeps it.
#define ENTRY __attribute__((weak))

ENTRY void *malloc(size_t size) { return allocate(size, 16); }
ENTRY void free(void *block) { release(block); }

ENTRY void *calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM_NUMBER);
  void *block = allocate(bytes, 16);
  if (block && header_of(block)->class != LARGE) fill(block, 0, bytes);
  return block;
}

// In place where the block stays of its class.
ENTRY void *realloc(void *block, size_t size) {
  if (!block) return allocate(size, 16);
  struct header *header = live_header(block, "realloc of what is no block");
  size_t room = HEADER + ((size + 15) & ~(size_t)15) + gap_of(size);
  if (size < ADDRESSES && header->class != LARGE && header->offset == HEADER && room <= LARGEST &&
      class_of(room) == header->class) {
    mark((word)block, size, (word)block - HEADER + room_of(header->class), HEAP_GAP);
    header->size = size;
    return block;
  }
  void *other = allocate(size, 16);
  if (!other) return 0;
  copy(other, block, header->size < size ? header->size : size);
  release(block);
  return other;
}

ENTRY void *reallocarray(void *block, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return fail(ENOMEM_NUMBER);
  return realloc(block, bytes);
}

static int is_power(size_t align) { return align && (align & (align - 1)) == 0; }

ENTRY void *memalign(size_t align, size_t size) {
  return is_power(align) ? allocate(size, align) : fail(EINVAL_NUMBER);
}
ENTRY void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
ENTRY void *valloc(size_t size) { return allocate(size, PAGE); }
ENTRY int posix_memalign(void **place, size_t align, size_t size) {
  if (!is_power(align) || align < sizeof(void *)) return EINVAL_NUMBER;
  void *block = allocate(size, align);
  if (!block) return ENOMEM_NUMBER;
  *place = block;
  return 0;
}
ENTRY size_t malloc_usable_size(void *block) {
  return block ? live_header(block, "size of what is no block")->size : 0;
}
