// An exception that reaches a noexcept function ends the program through the terminate handler.
// exec:
#include <cstdio>
#include <cstdlib>
#include <exception>

struct Loud {
    ~Loud() { printf("destroyed\n"); }
};

static void fail() { throw 3; }

static void pass() noexcept {
    Loud loud;
    fail();
}

int main() {
    std::set_terminate([] {
        printf("terminated\n");
        fflush(stdout);
        std::_Exit(9);
    });
    try {
        pass();
    } catch (int) {
        printf("caught\n");
    }
}
