// The class behind a pointer depends on the input; one of them frees what another still uses.
// run:
// paths: 4
// finding: double-free 16
#include <everett.h>
#include <memory>

struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
};
struct Square : Shape {
    int *side = new int(3);
    int area() const override { return *side * *side; }
    ~Square() override {
        delete side;
    }
};
struct Thief : Square {
    int area() const override { return 5; }
    ~Thief() override { delete side; }
};
struct Line : Shape {
    int area() const override { return 0; }
};

int main() {
    unsigned char kind;
    everett_make_symbolic(&kind, sizeof kind, "kind");
    std::unique_ptr<Shape> shape;
    switch (kind) {
    case 0: shape = std::make_unique<Line>(); break;
    case 1: shape = std::make_unique<Square>(); break;
    case 2: shape = std::make_unique<Thief>(); break;
    default: return 99;
    }
    return shape->area();
}
