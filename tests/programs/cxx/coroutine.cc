// A generator written as a coroutine, with an exception out of it.
// build: -std=c++20
// exec:
#include <coroutine>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <utility>

struct Generator {
    struct promise_type {
        int value = 0;
        std::exception_ptr error;
        Generator get_return_object() { return Generator(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) {
            value = v;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { error = std::current_exception(); }
    };
    std::coroutine_handle<promise_type> handle;
    explicit Generator(std::coroutine_handle<promise_type> h) : handle(h) {}
    Generator(Generator &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    ~Generator() {
        if (handle) handle.destroy();
    }
    bool next() {
        handle.resume();
        if (handle.promise().error) std::rethrow_exception(handle.promise().error);
        return !handle.done();
    }
    int value() const { return handle.promise().value; }
};

struct Guard {
    ~Guard() { printf("guard gone\n"); }
};

static Generator count(int upto) {
    Guard guard;
    for (int i = 0; i < upto; i++) {
        if (i == 4) throw std::runtime_error("four");
        co_yield i * i;
    }
}

int main() {
    for (int upto : {3, 6}) {
        Generator squares = count(upto);
        try {
            while (squares.next()) printf("%d\n", squares.value());
            printf("end\n");
        } catch (const std::runtime_error &error) {
            printf("%s\n", error.what());
        }
    }
    Generator abandoned = count(2);
    abandoned.next();
}
