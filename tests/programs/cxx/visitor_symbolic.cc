// A tree of expressions is built from symbolic bytes, walked through virtual functions and destroyed.
// run: --check-leaks
// finding: division-by-zero 29
#include <everett.h>
#include <memory>
#include <utility>

struct Expression {
    virtual ~Expression() = default;
    virtual int value() const = 0;
};
using Owned = std::unique_ptr<Expression>;
struct Number : Expression {
    int number;
    explicit Number(int n) : number(n) {}
    int value() const override { return number; }
};
struct Binary : Expression {
    Owned left, right;
    Binary(Owned l, Owned r) : left(std::move(l)), right(std::move(r)) {}
};
struct Sum : Binary {
    using Binary::Binary;
    int value() const override { return left->value() + right->value(); }
};
struct Quotient : Binary {
    using Binary::Binary;
    int value() const override {
        return left->value() / right->value();
    }
};

static Owned build(const unsigned char *&at, const unsigned char *end) {
    if (at == end) return std::make_unique<Number>(1);
    unsigned char code = *at++;
    if (code == '+' || code == '/') {
        Owned left = build(at, end);
        Owned right = build(at, end);
        if (code == '+') return std::make_unique<Sum>(std::move(left), std::move(right));
        return std::make_unique<Quotient>(std::move(left), std::move(right));
    }
    return std::make_unique<Number>(code & 3);
}

int main() {
    unsigned char program[3];
    everett_make_symbolic(program, sizeof program, "program");
    const unsigned char *at = program;
    Owned root = build(at, program + sizeof program);
    return root->value() > 100;
}
