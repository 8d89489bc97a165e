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

size_t strlcpy(char *to, const char *from, size_t size);
size_t everett_hard_strlcpy(uint32_t site, char *to, const char *from, size_t size) {
  size_t length = strlen(from);
  BEFORE(from, length + 1, 0);
  if (size) BEFORE(to, length < size ? length + 1 : size, 1);
  return strlcpy(to, from, size);
}

int memcmp(const void *one, const void *other, size_t size);
int everett_hard_memcmp(uint32_t site, const void *one, const void *other, size_t size) {
  BEFORE(one, size, 0);
  BEFORE(other, size, 0);
  return memcmp(one, other, size);
}
// What the optimiser makes of a comparison whose result is only compared with 0.
int everett_hard_bcmp(uint32_t site, const void *one, const void *other, size_t size) {
  return everett_hard_memcmp(site, one, other, size);
}

size_t wcslen(const wchar_t *text);
wchar_t *wcscpy(wchar_t *to, const wchar_t *from);
wchar_t *everett_hard_wcscpy(uint32_t site, wchar_t *to, const wchar_t *from) {
  size_t size = (wcslen(from) + 1) * sizeof *from;
  BEFORE(from, size, 0);
  BEFORE(to, size, 1);
  return wcscpy(to, from);
}

int puts(const char *text);
int everett_hard_puts(uint32_t site, const char *text) {
  BEFORE(text, strlen(text) + 1, 0);
  return puts(text);
}

int fputs(const char *text, void *file);
int everett_hard_fputs(uint32_t site, const char *text, void *file) {
  BEFORE(text, strlen(text) + 1, 0);
  return fputs(text, file);
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

long pread(int file, void *to, size_t size, long at);
long everett_hard_pread(uint32_t site, int file, void *to, size_t size, long at) {
  long got = pread(file, to, size, at);
  AFTER(to, got, 1);
  return got;
}

long readlink(const char *path, char *to, size_t size);
long everett_hard_readlink(uint32_t site, const char *path, char *to, size_t size) {
  long got = readlink(path, to, size);
  AFTER(to, got, 1);
  return got;
}

struct part {
  char *start;
  size_t size;
};

// Parts of memory: what was read lies in the first ones.
static void check_parts(uint32_t site, const struct part *parts, size_t count, size_t bytes, int is_write) {
  for (size_t at = 0; at < count && bytes; at++) {
    size_t size = parts[at].size < bytes ? parts[at].size : bytes;
    everett_hard_range(site, parts[at].start, size, is_write);
    bytes -= size;
  }
}

long readv(int file, const struct part *parts, int count);
long everett_hard_readv(uint32_t site, int file, const struct part *parts, int count) {
  long got = readv(file, parts, count);
  if (got > 0) check_parts(site, parts, (size_t)count, (size_t)got, 1);
  return got;
}

long writev(int file, const struct part *parts, int count);
long everett_hard_writev(uint32_t site, int file, const struct part *parts, int count) {
  if (count > 0) check_parts(site, parts, (size_t)count, ~0ul, 0);
  return writev(file, parts, count);
}

struct message {
  void *name;
  unsigned name_size;
  struct part *parts;
  int count;
};

long recvmsg(int file, struct message *message, int flags);
long everett_hard_recvmsg(uint32_t site, int file, struct message *message, int flags) {
  long got = recvmsg(file, message, flags);
  if (got > 0) check_parts(site, message->parts, (size_t)message->count, (size_t)got, 1);
  return got;
}

long sendmsg(int file, const struct message *message, int flags);
long everett_hard_sendmsg(uint32_t site, int file, const struct message *message, int flags) {
  if (message->count > 0) check_parts(site, message->parts, (size_t)message->count, ~0ul, 0);
  return sendmsg(file, message, flags);
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

char *gets(char *to);
char *everett_hard_gets(uint32_t site, char *to) {
  char *got = gets(to);
  if (got) BEFORE(to, strlen(to) + 1, 1);
  return got;
}

char *getcwd(char *to, size_t size);
char *everett_hard_getcwd(uint32_t site, char *to, size_t size) {
  char *got = getcwd(to, size);
  if (got) BEFORE(got, strlen(got) + 1, 1);
  return got;
}

char *realpath(const char *path, char *to);
char *everett_hard_realpath(uint32_t site, const char *path, char *to) {
  char *got = realpath(path, to);
  if (got) BEFORE(got, strlen(got) + 1, 1);
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

// What one conversion of `scanf` stores: its size, and what it is stored for.
struct conversion {
  enum { SKIPPED, COUNTED, STORED } what;
  enum { OBJECT, TEXT, WIDE_TEXT } kind;
  size_t size;
};

static size_t integer_size(char modifier, int is_doubled) {
  switch (modifier) {
  case 'h':
    return is_doubled ? 1 : 2;
  case 0:
    return 4;
  default:
    return 8;
  }
}

// Reads the conversion behind a `%`, and moves the format behind it. Returns 0 where it has an order of its own.
static int read_conversion(const char **format, struct conversion *conversion) {
  const char *at = *format;
  size_t width = 0;
  int is_skipped = *at == '*', is_allocated = 0, is_doubled = 0;
  if (is_skipped) at++;
  for (; *at >= '0' && *at <= '9'; at++) width = width * 10 + (size_t)(*at - '0');
  if (*at == '$') return 0;
  if (*at == 'm') is_allocated = 1, at++;
  char modifier = 0;
  for (; *at && (*at == 'h' || *at == 'l' || *at == 'j' || *at == 'z' || *at == 't' || *at == 'L' || *at == 'q'); at++)
    is_doubled = modifier == *at, modifier = *at;
  char kind = *at;
  if (kind == 0) return 0;
  at++;
  if (kind == '[') {
    if (*at == '^') at++;
    if (*at == ']') at++;
    while (*at && *at != ']') at++;
    if (*at) at++;
  }
  *format = at;
  int is_wide = modifier == 'l' || kind == 'S' || kind == 'C';
  conversion->what = is_skipped || kind == '%' ? SKIPPED : kind == 'n' ? COUNTED : STORED;
  conversion->kind = OBJECT;
  switch (kind) {
  case 's':
  case 'S':
  case '[':
    conversion->kind = is_wide ? WIDE_TEXT : TEXT;
    break;
  case 'c':
  case 'C':
    conversion->size = (width ? width : 1) * (is_wide ? sizeof(wchar_t) : 1);
    break;
  case 'p':
    conversion->size = sizeof(void *);
    break;
  case 'a': case 'e': case 'f': case 'g': case 'A': case 'E': case 'F': case 'G':
    conversion->size = modifier == 'L' ? sizeof(long double) : modifier == 'l' ? sizeof(double) : sizeof(float);
    break;
  default:
    conversion->size = integer_size(modifier, is_doubled);
  }
  if (is_allocated) conversion->kind = OBJECT, conversion->size = sizeof(void *);
  return 1;
}

static void check_scanned(uint32_t site, const char *format, int stored, va_list list) {
  while (*format && stored > 0) {
    if (*format++ != '%') continue;
    struct conversion conversion;
    if (!read_conversion(&format, &conversion)) return;
    if (conversion.what == SKIPPED) continue;
    void *to = va_arg(list, void *);
    if (conversion.what == COUNTED) continue;
    if (conversion.kind == TEXT) conversion.size = strlen(to) + 1;
    if (conversion.kind == WIDE_TEXT) conversion.size = (wcslen(to) + 1) * sizeof(wchar_t);
    BEFORE(to, conversion.size, 1);
    stored--;
  }
}

// `vsscanf` and `vfscanf`, and their forms with a list of their own.
#define SCANNING(name, source)                                                                       \
  int v##name(source from, const char *format, va_list list);                                        \
  int everett_hard_v##name(uint32_t site, source from, const char *format, va_list list) {           \
    va_list again;                                                                                   \
    va_copy(again, list);                                                                            \
    int stored = v##name(from, format, list);                                                        \
    check_scanned(site, format, stored, again);                                                      \
    va_end(again);                                                                                   \
    return stored;                                                                                   \
  }                                                                                                  \
  int everett_hard_##name(uint32_t site, source from, const char *format, ...) {                     \
    va_list list;                                                                                    \
    va_start(list, format);                                                                          \
    int stored = everett_hard_v##name(site, from, format, list);                                     \
    va_end(list);                                                                                    \
    return stored;                                                                                   \
  }
SCANNING(sscanf, const char *)
SCANNING(fscanf, void *)

int vscanf(const char *format, va_list list);
int everett_hard_scanf(uint32_t site, const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int stored = vscanf(format, list);
  check_scanned(site, format, stored, again);
  va_end(again);
  va_end(list);
  return stored;
}
