// noexcept as an operator, dynamic handlers, and std::terminate on an exception that leaves a thread of control.
// build: -std=c++14
// exec: unexpected
// exec: late
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

static void only_int(bool other) throw(int) {
    if (other) throw 2.5;
    throw 1;
}
static void never() noexcept(true) {}

struct Handler {
    ~Handler() { printf("handler gone\n"); }
};

int main(int, char **argv) {
    printf("%d %d\n", noexcept(never()), noexcept(only_int(true)));
    std::set_terminate([] {
        try {
            if (auto current = std::current_exception()) std::rethrow_exception(current);
        } catch (double value) {
            printf("terminated by %g\n", value);
        } catch (const std::exception &error) {
            printf("terminated by %s\n", error.what());
        }
        fflush(stdout);
        std::_Exit(3);
    });
    try {
        only_int(false);
    } catch (int value) {
        printf("int %d\n", value);
    }
    if (std::strcmp(argv[1], "unexpected") == 0) only_int(true);
    Handler handler;
    throw std::logic_error("nobody");
}
