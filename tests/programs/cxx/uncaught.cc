// An exception that nobody catches aborts, and is a finding where it was thrown.
// exec:
// run:
// paths: 1
// finding: uncaught-exception 9
#include <stdexcept>

static void fail() {
    throw std::runtime_error("nobody is here");
}

int main() {
    fail();
}
