// Destructors run innermost first while an exception crosses frames, and handlers see it once.
// build:
// build: -O2
// exec:
// exec: x
#include <cstdio>
#include <stdexcept>

struct Noisy {
    const char *name;
    explicit Noisy(const char *n) : name(n) { printf("+%s\n", name); }
    Noisy(const Noisy &) = delete;
    ~Noisy() { printf("-%s%s\n", name, std::uncaught_exceptions() ? " while unwinding" : ""); }
};

struct Pair {
    Noisy first;
    Noisy second;
    explicit Pair(bool fail) : first("first"), second("second") {
        if (fail) throw std::runtime_error("half built");
    }
};

static void inner(int depth, bool fail) {
    Noisy here("inner");
    if (depth > 0) {
        Noisy each("level");
        inner(depth - 1, fail);
        return;
    }
    Noisy array[2] = {Noisy("zero"), Noisy("one")};
    Pair pair(fail);
    printf("built\n");
}

static void outer(bool fail) {
    Noisy guard("outer");
    try {
        Noisy in_try("try");
        inner(2, fail);
    } catch (const std::logic_error &) {
        printf("never\n");
    } catch (const std::runtime_error &error) {
        Noisy in_handler("handler");
        printf("caught %s\n", error.what());
        throw;
    }
}

int main(int argc, char **) {
    try {
        outer(argc < 2);
    } catch (std::exception &error) {
        printf("again %s\n", error.what());
        return 5;
    }
    printf("no exception\n");
}
