// An exception crosses a stack as deep as the input says, and every frame cleans up.
// run:
// paths: 6
#include <everett.h>
#include <memory>
#include <stdexcept>

static int alive = 0;

struct Frame {
    Frame() { alive++; }
    ~Frame() { alive--; }
};

static void descend(unsigned depth) {
    Frame frame;
    auto heap = std::make_unique<Frame>();
    if (depth == 0) throw std::runtime_error("bottom");
    descend(depth - 1);
}

int main() {
    unsigned char depth;
    everett_make_symbolic(&depth, sizeof depth, "depth");
    if (depth > 4) return 50;
    try {
        descend(depth);
    } catch (const std::exception &) {
        everett_assert(alive == 0);
        return depth;
    }
    return 60;
}
