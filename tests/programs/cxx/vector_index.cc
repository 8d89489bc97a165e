// An index that is not checked runs over the end of a vector.
// run:
// paths: 3
// finding: out-of-bounds 15
#include <everett.h>
#include <vector>

int main() {
    unsigned char index;
    everett_make_symbolic(&index, sizeof index, "index");
    std::vector<int> numbers{1, 2, 3, 4, 5};
    numbers.shrink_to_fit();
    int sum = 0;
    if (index < 100)
        sum += numbers[index];
    return sum > 100;
}
