// A reference into a vector that grows on some inputs.
// run:
// paths: 2
// finding: use-after-free 15
#include <everett.h>
#include <vector>

int main() {
    unsigned char grow;
    everett_make_symbolic(&grow, sizeof grow, "grow");
    std::vector<int> numbers{1, 2, 3};
    numbers.shrink_to_fit();
    int &first = numbers[0];
    if (grow > 127) numbers.push_back(4);
    return first - 1;
}
