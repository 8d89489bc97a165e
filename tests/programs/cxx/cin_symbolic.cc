// A number is read from symbolic standard input with iostream.
// run:
// args: --sym-stdin 2
// finding: assertion 11
#include <cassert>
#include <iostream>

int main() {
    int number = 0;
    if (!(std::cin >> number)) return 1;
    assert(number != 42);
    return number < 0 ? 2 : 0;
}
