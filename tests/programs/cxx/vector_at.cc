// at() throws for a bad index, and nobody catches it.
// run:
// paths: 2
// finding: uncaught-exception 12
#include <everett.h>
#include <vector>

int main() {
    unsigned char index;
    everett_make_symbolic(&index, sizeof index, "index");
    std::vector<int> numbers(5, 1);
    int value = numbers.at(index);
    return value - 1;
}
