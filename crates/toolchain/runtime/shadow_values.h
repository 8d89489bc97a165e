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

// Functions by which instrumented code sets the shadow of frames: FILLER(name, value) makes one.
#define SHADOW_FILLERS(FILLER)                                                                                      \
  FILLER(00, 0) FILLER(01, 1) FILLER(02, 2) FILLER(03, 3) FILLER(04, 4) FILLER(05, 5) FILLER(06, 6) FILLER(07, 7)   \
  FILLER(f1, STACK_LEFT) FILLER(f2, STACK_MIDDLE) FILLER(f3, STACK_RIGHT) FILLER(f5, AFTER_RETURN)                  \
  FILLER(f8, AFTER_SCOPE)

#define SHADOW_START 0x7fff8000ul
#define SHADOW_SIZE 0x100000000000ul
#define ADDRESSES 0x800000000000ul

