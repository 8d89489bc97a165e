// zig c++ -target x86_64-linux-musl -g -O1 -fstandalone-debug -c -emit-llvm exceptions.cpp
struct Guard { int *cell; ~Guard() { ++*cell; } };
struct Base { virtual ~Base() {} virtual int value() const = 0; int field = 4; };
struct Derived : Base { int value() const override { return field; } int more = 6; };
namespace outer { Derived instance; }
template <class T> T twice(T value) { return value + value; }
int cell;
int risky(int value) { if (value > 3) throw value; if (value == 2) throw "two"; return twice(value); }
int run(int value) {
    Guard guard{&cell};
    try { return risky(value) + outer::instance.value(); }
    catch (int number) { return number; }
    catch (...) { return -1; }
}
