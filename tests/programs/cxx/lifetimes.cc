// When objects of static and thread storage are built and destroyed, and functions for the exit.
// exec:
#include <cstdio>
#include <cstdlib>

struct Noisy {
    const char *name;
    explicit Noisy(const char *n) : name(n) { printf("+%s\n", name); }
    ~Noisy() { printf("-%s\n", name); }
};

static int order = (printf("dynamic initialiser\n"), 3);
Noisy global("global");
static Noisy second("second global");
__attribute__((constructor(200))) static void early() { printf("early\n"); }
__attribute__((constructor)) static void late() { printf("constructor\n"); }
__attribute__((destructor)) static void last() { printf("destructor\n"); }
thread_local Noisy of_thread("thread");

static Noisy &local() {
    static Noisy once("local static");
    return once;
}

static int tries = 0;
static Noisy &fails_first() {
    static Noisy flaky = (++tries == 1 ? throw 1 : Noisy("second try"));
    return flaky;
}

int main() {
    printf("main %d\n", order);
    std::atexit([] { printf("at exit\n"); });
    printf("%s\n", local().name);
    printf("%s\n", local().name);
    try {
        fails_first();
    } catch (int) {
        printf("failed once\n");
    }
    printf("%s\n", fails_first().name);
    printf("%s\n", of_thread.name);
    std::exit(order);
}
