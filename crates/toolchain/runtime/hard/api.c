// Calls of the C library with a check of the memory that they are given. What a call reads or writes before it ends is
// checked before it; what depends on its result (how much `read` got) is checked right after it.

#include <stdarg.h>

#define BEFORE(start, size, is_write) everett_hard_range(site, start, size, is_write)

size_t strlen(const char *text);
size_t strnlen(const char *text, size_t most);

size_t everett_hard_strlen(uint32_t site, const char *text) {
  size_t length = strlen(text);
  BEFORE(text, length + 1, 0);
  return length;
}

char *strcpy(char *to, const char *from);
char *everett_hard_strcpy(uint32_t site, char *to, const char *from) {
  size_t size = strlen(from) + 1;
  BEFORE(from, size, 0);
  BEFORE(to, size, 1);
  return strcpy(to, from);
}

char *stpcpy(char *to, const char *from);
char *everett_hard_stpcpy(uint32_t site, char *to, const char *from) {
  size_t size = strlen(from) + 1;
  BEFORE(from, size, 0);
  BEFORE(to, size, 1);
  return stpcpy(to, from);
}

char *strcat(char *to, const char *from);
char *everett_hard_strcat(uint32_t site, char *to, const char *from) {
  size_t size = strlen(from) + 1, length = strlen(to);
  BEFORE(from, size, 0);
  BEFORE(to, length + size, 1);
  return strcat(to, from);
}

char *strncpy(char *to, const char *from, size_t size);
char *everett_hard_strncpy(uint32_t site, char *to, const char *from, size_t size) {
  size_t length = strnlen(from, size);
  BEFORE(from, length < size ? length + 1 : size, 0);
  BEFORE(to, size, 1);
  return strncpy(to, from, size);
}

char *strncat(char *to, const char *from, size_t size);
char *everett_hard_strncat(uint32_t site, char *to, const char *from, size_t size) {
  BEFORE(to, strlen(to) + strnlen(from, size) + 1, 1);
  return strncat(to, from, size);
}

char *strdup(const char *text);
char *everett_hard_strdup(uint32_t site, const char *text) {
  BEFORE(text, strlen(text) + 1, 0);
  return strdup(text);
}

#define AFTER(start, result, unit) \
  if ((long)(result) > 0) everett_hard_range(site, start, (size_t)(result) * (unit), 1)

long read(int file, void *to, size_t size);
long everett_hard_read(uint32_t site, int file, void *to, size_t size) {
  long got = read(file, to, size);
  AFTER(to, got, 1);
  return got;
}

long recv(int file, void *to, size_t size, int flags);
long everett_hard_recv(uint32_t site, int file, void *to, size_t size, int flags) {
  long got = recv(file, to, size, flags);
  AFTER(to, got < (long)size ? got : (long)size, 1);
  return got;
}

long recvfrom(int file, void *to, size_t size, int flags, void *address, void *length);
long everett_hard_recvfrom(uint32_t site, int file, void *to, size_t size, int flags, void *address, void *length) {
  long got = recvfrom(file, to, size, flags, address, length);
  AFTER(to, got < (long)size ? got : (long)size, 1);
  return got;
}

size_t fread(void *to, size_t size, size_t count, void *file);
size_t everett_hard_fread(uint32_t site, void *to, size_t size, size_t count, void *file) {
  size_t got = fread(to, size, count, file);
  AFTER(to, got, size);
  return got;
}

char *fgets(char *to, int size, void *file);
char *everett_hard_fgets(uint32_t site, char *to, int size, void *file) {
  char *got = fgets(to, size, file);
  if (got) BEFORE(to, strlen(to) + 1, 1);
  return got;
}

long write(int file, const void *from, size_t size);
long everett_hard_write(uint32_t site, int file, const void *from, size_t size) {
  BEFORE(from, size, 0);
  return write(file, from, size);
}

long send(int file, const void *from, size_t size, int flags);
long everett_hard_send(uint32_t site, int file, const void *from, size_t size, int flags) {
  BEFORE(from, size, 0);
  return send(file, from, size, flags);
}

long sendto(int file, const void *from, size_t size, int flags, const void *address, unsigned length);
long everett_hard_sendto(uint32_t site, int file, const void *from, size_t size, int flags, const void *address,
                         unsigned length) {
  BEFORE(from, size, 0);
  return sendto(file, from, size, flags, address, length);
}

size_t fwrite(const void *from, size_t size, size_t count, void *file);
size_t everett_hard_fwrite(uint32_t site, const void *from, size_t size, size_t count, void *file) {
  size_t bytes;
  if (!__builtin_mul_overflow(size, count, &bytes)) BEFORE(from, bytes, 0);
  return fwrite(from, size, count, file);
}

int vsprintf(char *to, const char *format, va_list list);
int everett_hard_vsprintf(uint32_t site, char *to, const char *format, va_list list) {
  int length = vsprintf(to, format, list);
  AFTER(to, (long)length + 1, 1);
  return length;
}
int everett_hard_sprintf(uint32_t site, char *to, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int length = everett_hard_vsprintf(site, to, format, list);
  va_end(list);
  return length;
}

int vsnprintf(char *to, size_t size, const char *format, va_list list);
int everett_hard_vsnprintf(uint32_t site, char *to, size_t size, const char *format, va_list list) {
  int length = vsnprintf(to, size, format, list);
  if (size && length >= 0) AFTER(to, (size_t)length < size ? (size_t)length + 1 : size, 1);
  return length;
}
int everett_hard_snprintf(uint32_t site, char *to, size_t size, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int length = everett_hard_vsnprintf(site, to, size, format, list);
  va_end(list);
  return length;
}
