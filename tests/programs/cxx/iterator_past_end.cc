// A loop over a list that reads through the end iterator for one input.
// run:
// finding: out-of-bounds 15
#include <everett.h>
#include <vector>

int main() {
    unsigned char wanted;
    everett_make_symbolic(&wanted, sizeof wanted, "wanted");
    std::vector<unsigned char> items{1, 5, 9};
    items.shrink_to_fit();
    auto at = items.begin();
    while (at != items.end() && *at != wanted) ++at;
    // The caller forgot that nothing may be found.
    unsigned char found = *at;
    return found;
}
