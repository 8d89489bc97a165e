; llvm-as link_second.ll -o link_second.llvm22.bc
target triple = "x86_64-unknown-linux-musl"
source_filename = "second.c"
%pair = type { i32, ptr }
%other = type { i64, %pair }
$inline_fn = comdat any
$blob = comdat largest
@shared = external global i32
@weakly = global i32 2
@common_small = common global [4 x i32] zeroinitializer, align 16
@elsewhere = global %pair { i32 5, ptr @local }
@blob = linkonce_odr constant [3 x i8] c"xyz", comdat
@local = internal global %other zeroinitializer
@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @setup, ptr null }, { i32, ptr, ptr } { i32 2, ptr @fallback, ptr null }]
declare i32 @name2(i32)
define internal void @setup() { store i32 3, ptr @local, align 4 ret void }
define linkonce_odr i32 @inline_fn() comdat { ret i32 1 }
define i32 @fallback() { ret i32 20 }
define i32 @defined_later(i32 %value) {
  call void @setup()
  %a = call i32 @inline_fn()
  %b = load i32, ptr @shared, align 4
  %c = call i32 @name2(i32 %b)
  %p = getelementptr %other, ptr @local, i64 0, i32 1, i32 1
  %s = alloca %other, align 8
  ret i32 %c
}
