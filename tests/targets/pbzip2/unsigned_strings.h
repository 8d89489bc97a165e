// Strings of unsigned char, which pbzip2 uses and libc++ no longer has.
#include <cstring>
#include <string>

namespace std {
template <> struct char_traits<unsigned char> {
    typedef unsigned char char_type;
    typedef int int_type;
    typedef streampos pos_type;
    typedef streamoff off_type;
    typedef mbstate_t state_type;
    static void assign(char_type &to, const char_type &from) noexcept { to = from; }
    static char_type *assign(char_type *to, size_t n, char_type c) { return (char_type *)memset(to, c, n); }
    static bool eq(char_type a, char_type b) noexcept { return a == b; }
    static bool lt(char_type a, char_type b) noexcept { return a < b; }
    static int compare(const char_type *a, const char_type *b, size_t n) { return n ? memcmp(a, b, n) : 0; }
    static size_t length(const char_type *s) { return strlen((const char *)s); }
    static const char_type *find(const char_type *s, size_t n, const char_type &c) {
        return n ? (const char_type *)memchr(s, c, n) : nullptr;
    }
    static char_type *move(char_type *to, const char_type *from, size_t n) {
        return n ? (char_type *)memmove(to, from, n) : to;
    }
    static char_type *copy(char_type *to, const char_type *from, size_t n) {
        return n ? (char_type *)memcpy(to, from, n) : to;
    }
    static int_type not_eof(int_type c) noexcept { return c == eof() ? 0 : c; }
    static char_type to_char_type(int_type c) noexcept { return (char_type)c; }
    static int_type to_int_type(char_type c) noexcept { return c; }
    static bool eq_int_type(int_type a, int_type b) noexcept { return a == b; }
    static int_type eof() noexcept { return -1; }
};
} // namespace std
