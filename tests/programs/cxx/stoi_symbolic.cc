// std::stoi on symbolic digits: a number, no number.
// run:
// finding: uncaught-exception 14
// finding: assertion 16
#include <everett.h>
#include <string>

int main() {
    char text[3];
    everett_make_symbolic(text, sizeof text, "text");
    text[2] = '\0';
    everett_assume(text[0] >= '0' && text[0] < ';');
    everett_assume(text[1] >= '0' && text[1] <= '9');
    int number = std::stoi(text);
    // The largest number.
    everett_assert(number != 99);
    return 0;
}
