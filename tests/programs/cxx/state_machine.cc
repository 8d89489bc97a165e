// A protocol with std::function handlers in a table; one state is not handled.
// build: -O2
// run:
// finding: uncaught-exception 22
#include <array>
#include <everett.h>
#include <functional>

int main() {
    unsigned char input[2];
    everett_make_symbolic(input, sizeof input, "input");
    int state = 0;
    std::array<std::function<int(unsigned char)>, 4> handlers;
    handlers[0] = [](unsigned char c) { return c == 'a' ? 1 : c == 'b' ? 3 : 0; };
    handlers[1] = [&state](unsigned char c) { return state + (c == 'c'); };
    handlers[2] = [](unsigned char) { return 0; };
    for (unsigned char c : input) {
        if (state > 3)
            return 1;
        everett_assert(state >= 0);
        // The fourth has no handler.
        state = handlers[static_cast<unsigned>(state)](c);
    }
    return state;
}
