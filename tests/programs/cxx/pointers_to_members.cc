// Pointers to members and to virtual functions, casts between bases, and constructors that call virtual functions.
// exec:
#include <cstdio>
#include <functional>

struct A {
    int a = 1;
    A() { announce(); }
    virtual ~A() { announce(); }
    virtual void announce() { printf("A\n"); }
    virtual int number(int n) { return n + a; }
    int plain(int n) { return n * 2; }
};
struct B {
    int b = 2;
    virtual int second() { return b; }
    virtual B *copy() const { return new B(*this); }
    virtual ~B() = default;
};
struct C : A, B {
    int c = 3;
    C() { announce(); }
    ~C() override { announce(); }
    void announce() override { printf("C %d\n", c); }
    int number(int n) override { return n + c; }
    int second() override { return b + c; }
    C *copy() const override { return new C(*this); }
};

int main() {
    C object;
    int (A::*function)(int) = &A::number;
    int (A::*plain)(int) = &A::plain;
    int B::*field = &B::b;
    int C::*derived = field;
    B *second = &object;
    printf("%d %d %d %d\n", (object.*function)(10), (object.*plain)(10), object.*derived, second->second());
    printf("%d %d\n", static_cast<C *>(second) == &object, static_cast<void *>(second) == static_cast<void *>(&object));
    B *copied = second->copy();
    printf("%d\n", copied->second());
    delete copied;
    std::function<int(A &, int)> call = &A::number;
    printf("%d %d\n", call(object, 5), std::mem_fn(&C::second)(object));
    int (B::*none)() = nullptr;
    printf("%d\n", none == nullptr);
}
