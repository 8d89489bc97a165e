// What the headers of glibc make of calls, for bitcode that was compiled with them: names that musl does not have.
// The structures of both libraries are the kernel's.

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY __attribute__((weak))

LIBRARY char *canonicalize_file_name(const char *path) { return realpath(path, 0); }

// Of C++'s thread-local objects, whose destructors run when the thread ends.
extern int __cxa_thread_atexit(void (*)(void *), void *, void *) __attribute__((weak));
extern int __cxa_atexit(void (*)(void *), void *, void *);
LIBRARY int __cxa_thread_atexit_impl(void (*end)(void *), void *object, void *library) {
  return __cxa_thread_atexit ? __cxa_thread_atexit(end, object, library) : __cxa_atexit(end, object, library);
}

// C23's numbers with a base prefix of their own.
LIBRARY long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }
LIBRARY long long __isoc23_strtoll(const char *text, char **end, int base) { return strtoll(text, end, base); }
LIBRARY unsigned long __isoc23_strtoul(const char *text, char **end, int base) { return strtoul(text, end, base); }
LIBRARY unsigned long long __isoc23_strtoull(const char *text, char **end, int base) {
  return strtoull(text, end, base);
}
#define VARIADIC(type, call) \
  {                          \
    va_list list;            \
    va_start(list, format);  \
    type result = call;      \
    va_end(list);            \
    return result;           \
  }
LIBRARY int __isoc23_scanf(const char *format, ...) VARIADIC(int, vscanf(format, list))
LIBRARY int __isoc23_sscanf(const char *text, const char *format, ...) VARIADIC(int, vsscanf(text, format, list))
LIBRARY int __isoc23_fscanf(FILE *file, const char *format, ...) VARIADIC(int, vfscanf(file, format, list))

// _FORTIFY_SOURCE. The engine checks the bounds of all accesses itself.
LIBRARY void *__memcpy_chk(void *to, const void *from, size_t size, size_t room) {
  return (void)room, memcpy(to, from, size);
}
LIBRARY void *__memmove_chk(void *to, const void *from, size_t size, size_t room) {
  return (void)room, memmove(to, from, size);
}
LIBRARY void *__mempcpy_chk(void *to, const void *from, size_t size, size_t room) {
  return (void)room, mempcpy(to, from, size);
}
LIBRARY void *__memset_chk(void *to, int byte, size_t size, size_t room) {
  return (void)room, memset(to, byte, size);
}
LIBRARY char *__strcpy_chk(char *to, const char *from, size_t room) { return (void)room, strcpy(to, from); }
LIBRARY char *__stpcpy_chk(char *to, const char *from, size_t room) { return (void)room, stpcpy(to, from); }
LIBRARY char *__strcat_chk(char *to, const char *from, size_t room) { return (void)room, strcat(to, from); }
LIBRARY char *__strncpy_chk(char *to, const char *from, size_t size, size_t room) {
  return (void)room, strncpy(to, from, size);
}
LIBRARY char *__strncat_chk(char *to, const char *from, size_t size, size_t room) {
  return (void)room, strncat(to, from, size);
}
LIBRARY char *__fgets_chk(char *to, size_t room, int size, FILE *file) { return (void)room, fgets(to, size, file); }
LIBRARY size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file) {
  return (void)room, fread(to, size, count, file);
}
LIBRARY ssize_t __read_chk(int fd, void *to, size_t size, size_t room) { return (void)room, read(fd, to, size); }
LIBRARY char *__realpath_chk(const char *path, char *to, size_t room) { return (void)room, realpath(path, to); }
LIBRARY char *__getcwd_chk(char *to, size_t size, size_t room) { return (void)room, getcwd(to, size); }
LIBRARY int __printf_chk(int flag, const char *format, ...) VARIADIC(int, ((void)flag, vprintf(format, list)))
LIBRARY int __fprintf_chk(FILE *file, int flag, const char *format, ...)
    VARIADIC(int, ((void)flag, vfprintf(file, format, list)))
LIBRARY int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...)
    VARIADIC(int, ((void)flag, (void)room, vsprintf(to, format, list)))
LIBRARY int __snprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, ...)
    VARIADIC(int, ((void)flag, (void)room, vsnprintf(to, size, format, list)))
LIBRARY int __vprintf_chk(int flag, const char *format, va_list list) { return (void)flag, vprintf(format, list); }
LIBRARY int __vfprintf_chk(FILE *file, int flag, const char *format, va_list list) {
  return (void)flag, vfprintf(file, format, list);
}
LIBRARY int __vsnprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, va_list list) {
  return (void)flag, (void)room, vsnprintf(to, size, format, list);
}

// _FILE_OFFSET_BITS: offsets have 64 bits in all calls.
#undef open64
#undef openat64
#undef creat64
#undef fopen64
#undef lseek64
#undef fseeko64
#undef ftello64
#undef stat64
#undef lstat64
#undef fstat64
#undef fstatat64
#undef truncate64
#undef ftruncate64
#undef mmap64
#undef pread64
#undef pwrite64
#undef readdir64
#undef mkstemp64
#undef getrlimit64
#undef setrlimit64
static mode_t mode_in(va_list list, int flags) {
  return flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(list, mode_t) : 0;
}
#define OPENS(call)               \
  {                               \
    va_list list;                 \
    va_start(list, flags);        \
    mode_t mode = mode_in(list, flags); \
    va_end(list);                 \
    return call;                  \
  }
LIBRARY int open64(const char *path, int flags, ...) OPENS(open(path, flags, mode))
LIBRARY int openat64(int base, const char *path, int flags, ...) OPENS(openat(base, path, flags, mode))
LIBRARY int creat64(const char *path, mode_t mode) { return creat(path, mode); }
LIBRARY FILE *fopen64(const char *path, const char *how) { return fopen(path, how); }
LIBRARY off_t lseek64(int fd, off_t offset, int from) { return lseek(fd, offset, from); }
LIBRARY int fseeko64(FILE *file, off_t offset, int from) { return fseeko(file, offset, from); }
LIBRARY off_t ftello64(FILE *file) { return ftello(file); }
LIBRARY int stat64(const char *path, struct stat *status) { return stat(path, status); }
LIBRARY int lstat64(const char *path, struct stat *status) { return lstat(path, status); }
LIBRARY int fstat64(int fd, struct stat *status) { return fstat(fd, status); }
LIBRARY int fstatat64(int base, const char *path, struct stat *status, int flags) {
  return fstatat(base, path, status, flags);
}
LIBRARY int truncate64(const char *path, off_t size) { return truncate(path, size); }
LIBRARY int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }
LIBRARY void *mmap64(void *at, size_t size, int access, int flags, int fd, off_t offset) {
  return mmap(at, size, access, flags, fd, offset);
}
LIBRARY ssize_t pread64(int fd, void *to, size_t size, off_t offset) { return pread(fd, to, size, offset); }
LIBRARY ssize_t pwrite64(int fd, const void *from, size_t size, off_t offset) {
  return pwrite(fd, from, size, offset);
}
LIBRARY struct dirent *readdir64(DIR *folder) { return readdir(folder); }
LIBRARY int mkstemp64(char *name) { return mkstemp(name); }
LIBRARY int getrlimit64(int what, struct rlimit *limit) { return getrlimit(what, limit); }
LIBRARY int setrlimit64(int what, const struct rlimit *limit) { return setrlimit(what, limit); }
