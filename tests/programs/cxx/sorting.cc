// Three symbolic numbers in every order; sorting them is right on all paths.
// run:
#include <algorithm>
#include <everett.h>
#include <vector>

int main() {
    unsigned char input[3];
    everett_make_symbolic(input, sizeof input, "input");
    std::vector<unsigned char> sorted(input, input + 3);
    std::sort(sorted.begin(), sorted.end());
    everett_assert(sorted[0] <= sorted[1] && sorted[1] <= sorted[2]);
    everett_assert(sorted[0] + sorted[1] + sorted[2] == input[0] + input[1] + input[2]);
    return 0;
}
