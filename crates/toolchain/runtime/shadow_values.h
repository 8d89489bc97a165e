// What instrumented code and its runtimes agree on. Stands before the runtimes that have a shadow of memory.

// Values of the shadow: 0 all eight bytes may be used, 1 to 7 so many of them, and why none may.
enum {
  HEAP_GAP = 0xfa,
  HEAP_FREED = 0xfd,
  STACK_LEFT = 0xf1,
  STACK_MIDDLE = 0xf2,
  STACK_RIGHT = 0xf3,
  AFTER_RETURN = 0xf5,
  AFTER_SCOPE = 0xf8,
  GLOBAL_GAP = 0xf9,
  ALLOCA_LEFT = 0xca,
  ALLOCA_RIGHT = 0xcb,
};

#define SHADOW_START 0x7fff8000ul
#define SHADOW_SIZE 0x100000000000ul
#define ADDRESSES 0x800000000000ul

