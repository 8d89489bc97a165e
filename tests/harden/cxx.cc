#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
struct Shape { virtual ~Shape() = default; virtual int area() const = 0; };
struct Square : Shape {
  int side;
  explicit Square(int s) : side(s) {
  }
  int area() const override {
    return side * side;
  }
};
static int fail(int depth) {
  char own[16] = {};
  if (depth == 0) throw std::runtime_error("far");
  own[3] = 1;
  return fail(depth - 1) + own[3];
}
// The library throws; this frame has nothing to clean up.
__attribute__((noinline)) static int far_number(const std::string &text, int depth) {
  char own[64] = {};
  own[depth] = 1;
  asm volatile("" : : "r"(own) : "memory");
  return depth == 0 ? std::stoi(text) : far_number(text, depth - 1) + own[depth];
}
__attribute__((noinline)) static int after(int seed) {
  char own[2048];
  std::memset(own, seed, sizeof own);
  asm volatile("" : : "r"(own) : "memory");
  return own[seed & 2047];
}
int main() {
  static const std::string texts[] = {"none", "17"};
  for (int round = 0; round < 3; round++) try {
    std::cout << far_number(texts[round & 1], 8) << "\n";
  } catch (const std::invalid_argument &) {
    std::cout << "no number " << after(round) << "\n";
  }
  std::vector<std::unique_ptr<Shape>> shapes;
  std::map<std::string, int> areas;
  for (int at = 0; at < 20; at++) {
    shapes.push_back(std::make_unique<Square>(at));
    areas["s" + std::to_string(at)] = shapes.back()->area();
  }
  for (int round = 0; round < 3; round++) try {
    fail(10);
  } catch (const std::exception &error) {
    std::cout << error.what() << "\n";
  }
  for (auto &[name, area] : areas) std::cout << name << " " << area << "\n";
}
