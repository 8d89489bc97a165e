// A recursive parser of expressions over symbolic text: division by zero and a failed assertion.
// run:
// finding: assertion 46
// finding: division-by-zero 31
#include <cassert>
#include <everett.h>
#include <stdexcept>
#include <string>
#include <string_view>

class Parser {
    std::string_view rest;

    char peek() const { return rest.empty() ? '\0' : rest.front(); }
    int factor() {
        char c = peek();
        if (c < '0' || c > '9') throw std::invalid_argument("digit expected");
        rest.remove_prefix(1);
        return c - '0';
    }

  public:
    explicit Parser(std::string_view text) : rest(text) {}
    int term() {
        int value = factor();
        while (peek() == '*' || peek() == '/') {
            char op = peek();
            rest.remove_prefix(1);
            int right = factor();
            if (op == '*') value *= right;
            else value = value / right;
        }
        if (!rest.empty()) throw std::invalid_argument("end expected");
        return value;
    }
};

int main() {
    char text[4];
    everett_make_symbolic(text, sizeof text, "text");
    text[3] = '\0';
    try {
        int value = Parser(text).term();
        // Nine times nine is too much.
        (void)value;
        assert(value != 81);
    } catch (const std::invalid_argument &) {
        return 1;
    }
    return 0;
}
