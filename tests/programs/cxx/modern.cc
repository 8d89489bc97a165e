// What C++23 adds: format, expected, print, deduced this, multidimensional subscripts, spaceship comparisons.
// build: -std=c++23
// exec:
#include <compare>
#include <cstdio>
#include <expected>
#include <format>
#include <iostream>
#include <memory_resource>
#include <print>
#include <string>
#include <vector>

struct Version {
    int major, minor;
    auto operator<=>(const Version &) const = default;
};

struct Grid {
    int cells[3][4] = {};
    template <class Self> auto &&operator[](this Self &&self, int row, int column) { return self.cells[row][column]; }
};

static std::expected<int, std::string> parse(std::string_view text) {
    int value = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return std::unexpected(std::format("bad character {:?}", c));
        value = value * 10 + (c - '0');
    }
    return value;
}

consteval int square(int n) { return n * n; }

template <class T> concept Small = sizeof(T) <= 4;
static const char *size_of(Small auto) { return "small"; }
static const char *size_of(auto) { return "large"; }

int main() {
    std::cout << std::format("{:>8}|{:<6}|{:^7}|{:#x}|{:.3f}|{:e}\n", "right", 42, "mid", 255, 3.14159, 12345.678);
    std::println("{} {:?} {}", true, "quoted\n", 'c');
    for (auto text : {"123", "12x"}) {
        auto result = parse(text).transform([](int n) { return n * 2; });
        std::println("{}", result ? std::to_string(*result) : result.error());
    }
    try {
        std::println("{}", parse("?").value());
    } catch (const std::bad_expected_access<std::string> &error) {
        std::println("{}", error.error());
    }
    std::string text = "text";
    try {
        std::println("{}", std::vformat("{:d}", std::make_format_args(text)));
    } catch (const std::format_error &) {
        std::println("format error");
    }
    Grid grid;
    grid[1, 2] = 7;
    std::println("{} {} {}", grid[1, 2], Version{1, 2} < Version{1, 10}, (Version{2, 0} <=> Version{2, 0}) == 0);
    std::println("{} {} {}", square(12), size_of(1), size_of(1.0));
    char buffer[512];
    std::pmr::monotonic_buffer_resource resource(buffer, sizeof buffer, std::pmr::null_memory_resource());
    std::pmr::vector<int> numbers(&resource);
    try {
        for (int i = 0; i < 1000; i++) numbers.push_back(i);
    } catch (const std::bad_alloc &) {
        std::println("full after {}", numbers.size());
    }
}
