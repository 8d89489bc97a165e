; Instructions and constants that compilers seldom write: llvm-as everything.ll -o everything.llvm22.bc
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-musl"

%opaque = type opaque
%node = type { i32, ptr, [2 x %leaf] }
%leaf = type <{ i8, i64, half }>
$group = comdat any
$large = comdat largest
@node = global %node { i32 -1, ptr @node, [2 x %leaf] [%leaf <{ i8 1, i64 2, half 0xH3C00 }>, %leaf zeroinitializer] }
@0 = private unnamed_addr constant [4 x i8] c"a\00\22\\", align 1
@grouped = linkonce_odr global i32 4, comdat($group)
@largest = linkonce_odr global [3 x i16] [i16 1, i16 -2, i16 3], comdat($large)
@expression = global i64 sub (i64 ptrtoint (ptr @0 to i64), i64 ptrtoint (ptr @node to i64))
@inside = global ptr getelementptr inbounds nuw (i8, ptr @node, i64 12), section "mine", align 16
@wide = constant i200 -1234567890123456789012345678901234567890
@floats = constant { float, double, x86_fp80, fp128, bfloat } { float 0x7FF8000020000000, double 1.0e-3, x86_fp80 0xK4000C000000000000000, fp128 0xL00000000000000003FFF000000000000, bfloat 0xR3F80 }
@vectors = constant { <4 x float>, <2 x i1>, <3 x i7> } { <4 x float> splat (float 2.5), <2 x i1> <i1 true, i1 undef>, <3 x i7> <i7 1, i7 poison, i7 -3> }
@labels = constant [2 x ptr] [ptr blockaddress(@control, %there), ptr blockaddress(@control, %here)]
@aside = external global i32
@"\01aside" = global i32 7
@tls = thread_local(initialexec) global i32 0
@missing = extern_weak global i32
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @setup, ptr null }]
@other = weak alias i32, ptr @grouped
@resolved = ifunc i32 (i32), ptr @resolver

declare i32 @personality(...)
declare void @may_throw(i32, ...)
declare void @llvm.donothing()

define internal void @setup() { ret void }
define ptr @resolver() { ret ptr null }

define i32 @control(i32 %value, ptr %target, i128 %large) personality ptr @personality {
  switch i128 %large, label %here [
    i128 170141183460469231731687303715884105727, label %there
    i128 -1, label %exit
  ]
here:
  indirectbr ptr %target, [label %there, label %exit]
there:
  invoke void (i32, ...) @may_throw(i32 %value, double 1.0, ptr %target) to label %exit unwind label %pad
pad:
  %raised = landingpad { ptr, i32 } cleanup catch ptr @node filter [1 x ptr] [ptr @0]
  resume { ptr, i32 } %raised
exit:
  %merged = phi i32 [ 1, %0 ], [ %value, %here ], [ %value, %there ], [ %later, %exit2 ]
  callbr void asm sideeffect "jmp ${0:l}", "!i,~{memory}"() to label %last [label %exit2]
exit2:
  %later = add nuw nsw i32 %merged, 7
  br label %exit
last:
  %frozen = freeze i32 %merged
  ret i32 %frozen
}

define void @memory(ptr %p, i32 %n, i64 %x) {
  %slot = alloca i64, i32 %n, align 32
  %a = load atomic volatile i64, ptr %p syncscope("singlethread") acquire, align 8
  store atomic i64 %a, ptr %slot release, align 8
  %pair = cmpxchg weak volatile ptr %p, i64 %a, i64 %x acq_rel monotonic, align 8
  %old = extractvalue { i64, i1 } %pair, 0
  %nand = atomicrmw nand ptr %p, i64 %old seq_cst, align 8
  %fadd = atomicrmw volatile fadd ptr %p, float 1.0 monotonic, align 4
  %uinc = atomicrmw uinc_wrap ptr %p, i32 3 seq_cst, align 4
  fence syncscope("singlethread") seq_cst
  %arg = va_arg ptr %p, i32
  %made = insertvalue { i32, [2 x i64] } poison, i64 %a, 1, 0
  %field = getelementptr inbounds %node, ptr %p, i64 %x, i32 2, i64 1, i32 1
  %loose = getelementptr nusw nuw i8, ptr %p, i64 4
  store { i32, [2 x i64] } %made, ptr %field, align 1
  ret void
}

define <4 x i32> @lanes(<4 x i32> %a, <4 x i32> %b, <4 x i1> %m, <4 x ptr> %ps, float %f) {
  %picked = select <4 x i1> %m, <4 x i32> %a, <4 x i32> %b
  %mixed = shufflevector <4 x i32> %picked, <4 x i32> poison, <4 x i32> <i32 3, i32 poison, i32 1, i32 0>
  %spread = shufflevector <4 x i32> %mixed, <4 x i32> %b, <4 x i32> zeroinitializer
  %one = extractelement <4 x i32> %spread, i64 2
  %put = insertelement <4 x i32> %spread, i32 %one, i32 1
  %compared = icmp samesign ult <4 x i32> %put, splat (i32 9)
  %addresses = getelementptr i32, <4 x ptr> %ps, i64 1
  %negated = fneg nnan nsz float %f
  %ordered = fcmp fast olt float %negated, 0x36A0000000000000
  %rest = frem reassoc float %f, 3.0
  %whole = fptosi float %rest to i19
  %small = trunc nuw nsw i32 %one to i8
  %grown = zext nneg i8 %small to i32
  %joined = or disjoint i32 %grown, 256
  %shifted = lshr exact i32 %joined, 1
  %result = insertelement <4 x i32> %put, i32 %shifted, i32 0
  ret <4 x i32> %result
}

define void @calls(ptr byval(%node) align 8 %copy, ptr sret(%leaf) %out, ptr %f) nounwind {
  %r = tail call fastcc signext i32 %f(i32 zeroext 5) #0
  call void asm "nop", "r,~{dirflag}"(i32 %r)
  call void %f(ptr byval(%node) align 8 %copy) [ "deopt"(i32 1, ptr %f), "other"() ]
  musttail call void @calls(ptr byval(%node) align 8 %copy, ptr sret(%leaf) %out, ptr %f)
  ret void
}

attributes #0 = { noreturn }
