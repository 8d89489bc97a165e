; Exception handling of Windows, which is read but not executed: llvm-as windows.ll -o windows.llvm22.bc
target triple = "x86_64-pc-windows-msvc"
declare i32 @__CxxFrameHandler3(...)
declare void @raise()
define i32 @guarded() personality ptr @__CxxFrameHandler3 {
  invoke void @raise() to label %fine unwind label %dispatch
fine:
  invoke void @raise() to label %end unwind label %clean
dispatch:
  %switch = catchswitch within none [label %handler] unwind to caller
handler:
  %pad = catchpad within %switch [ptr null, i32 64, ptr null]
  call void @raise() [ "funclet"(token %pad) ]
  catchret from %pad to label %end
clean:
  %cleanup = cleanuppad within none []
  cleanupret from %cleanup unwind to caller
end:
  ret i32 0
}
