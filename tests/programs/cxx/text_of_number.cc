// The text of a symbolic number, made in three ways, reads back as the number.
// run:
#include <charconv>
#include <cstdlib>
#include <everett.h>
#include <sstream>
#include <string>

int main() {
    signed char value;
    everett_make_symbolic(&value, sizeof value, "value");
    std::string text = std::to_string(value);
    everett_assert(std::atoi(text.c_str()) == value);
    char buffer[8];
    auto end = std::to_chars(buffer, buffer + sizeof buffer, static_cast<int>(value)).ptr;
    everett_assert(std::string(buffer, end) == text);
    std::ostringstream out;
    out << static_cast<int>(value);
    everett_assert(out.str() == text);
    return static_cast<int>(text.size());
}
