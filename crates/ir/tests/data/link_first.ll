; llvm-as link_first.ll -o link_first.llvm22.bc
target triple = "x86_64-unknown-linux-musl"
source_filename = "first.c"
%pair = type { i32, ptr }
$inline_fn = comdat any
$big = comdat largest
$blob = comdat largest
@shared = global i32 1
@weakly = weak global i32 1
@common_small = common global i32 0, align 4
@elsewhere = external global %pair
@blob = linkonce_odr constant [2 x i8] c"ab", comdat
@local = internal global %pair { i32 1, ptr @elsewhere }
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @setup, ptr null }]
@llvm.used = appending global [1 x ptr] [ptr @local]
@name = alias i32, ptr @shared
define internal void @setup() { ret void }
define linkonce_odr i32 @inline_fn() comdat { ret i32 1 }
define weak i32 @fallback() { ret i32 10 }
declare i32 @defined_later(i32)
define i32 @main() {
  call void @setup()
  %a = call i32 @inline_fn()
  %b = call i32 @defined_later(i32 %a)
  %c = call i32 @fallback()
  %d = load i32, ptr @local
  switch i32 %c, label %out [ i32 7, label %out ]
out:
  %e = call i32 asm "nop", "=r"()
  ret i32 %b
}
