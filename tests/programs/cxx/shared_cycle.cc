// Two shared pointers in a circle leak where the input closes it.
// run: --check-leaks
// paths: 2
// finding: leak 17
#include <everett.h>
#include <memory>

struct Node {
    std::shared_ptr<Node> next;
    int value = 1;
};

int main() {
    unsigned char close;
    everett_make_symbolic(&close, sizeof close, "close");
    {
        auto first = std::make_shared<Node>();
        first->next = std::make_shared<Node>();
        if (close == 'c') first->next->next = first;
    }
    return 0;
}
