// Strings from symbolic arguments, on both sides of the small buffer.
// run:
// args: --sym-arg 2
// finding: assertion 15
#include <cassert>
#include <string>

int main(int argc, char **argv) {
    if (argc < 2) return 1;
    std::string text = argv[1];
    std::string longer = text + "-a suffix that does not fit into the small buffer-" + text;
    auto at = longer.find("x-");
    if (at == std::string::npos) return 2;
    // "suffix" is followed by a space, so only the argument can end in x.
    assert(text.size() != 2);
    return 0;
}
