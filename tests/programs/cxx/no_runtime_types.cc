// Without exceptions and without type information, in the smallest code.
// build: -fno-exceptions -fno-rtti -Os
// exec: 3 1 2
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

struct Visitor {
    virtual void visit(int n) = 0;
    virtual ~Visitor() = default;
};
struct Sum final : Visitor {
    int total = 0;
    void visit(int n) override { total += n; }
};

int main(int argc, char **argv) {
    std::vector<int> numbers;
    for (int i = 1; i < argc; i++) numbers.push_back(std::atoi(argv[i]));
    std::sort(numbers.begin(), numbers.end());
    auto sum = std::make_unique<Sum>();
    for (int n : numbers) static_cast<Visitor &>(*sum).visit(n * n);
    printf("%d %d\n", sum->total, numbers.front());
    return sum->total;
}
