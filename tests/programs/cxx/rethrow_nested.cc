// Rethrowing, nested exceptions and exceptions that are carried elsewhere.
// exec:
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

static void describe(const std::exception &error, int level = 0) {
    printf("%d %s\n", level, error.what());
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception &inner) {
        describe(inner, level + 1);
    } catch (int value) {
        printf("%d int %d\n", level + 1, value);
    }
}

static void layers(int depth) {
    try {
        if (depth == 0) throw 7;
        layers(depth - 1);
    } catch (...) {
        std::throw_with_nested(std::runtime_error("layer " + std::to_string(depth)));
    }
}

static std::exception_ptr capture(const std::function<void()> &work) {
    try {
        work();
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

struct Counted {
    static int alive;
    Counted() { alive++; }
    Counted(const Counted &) { alive++; }
    ~Counted() { alive--; }
};
int Counted::alive = 0;

int main() {
    try {
        layers(3);
    } catch (const std::exception &error) {
        describe(error);
    }
    std::exception_ptr kept = capture([] { throw std::out_of_range("kept"); });
    for (int round = 0; round < 2; round++) {
        try {
            std::rethrow_exception(kept);
        } catch (const std::logic_error &error) {
            printf("%s\n", error.what());
        }
    }
    printf("%d\n", capture([] {}) == nullptr);
    {
        std::exception_ptr counted = capture([] { throw Counted(); });
        std::exception_ptr copy = counted;
        printf("alive %d\n", Counted::alive);
        try {
            std::rethrow_exception(copy);
        } catch (Counted &) {
            printf("alive %d\n", Counted::alive);
        }
    }
    printf("alive %d\n", Counted::alive);
    try {
        try {
            throw 1;
        } catch (int &value) {
            value = 2;
            try {
                throw 'x';
            } catch (char) {
            }
            throw;
        }
    } catch (int value) {
        printf("changed to %d\n", value);
    }
    try {
        std::make_exception_ptr(3.5);
        std::rethrow_exception(std::make_exception_ptr(3.5));
    } catch (double value) {
        printf("%g\n", value);
    }
}
