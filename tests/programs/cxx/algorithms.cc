// Algorithms, ranges, random numbers of a fixed seed, time arithmetic and the filesystem's paths.
// build: -std=c++20 -O2
// exec:
#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <numeric>
#include <random>
#include <ranges>
#include <regex>
#include <span>
#include <string>
#include <vector>

constexpr long gcd_of(std::span<const long> values) {
    long result = 0;
    for (long value : values) result = std::gcd(result, value);
    return result;
}

int main() {
    std::mt19937 generator(12345);
    std::vector<int> numbers(12);
    std::generate(numbers.begin(), numbers.end(), [&] { return static_cast<int>(generator() % 1000); });
    std::ranges::copy(numbers, std::ostream_iterator<int>(std::cout, " "));
    std::cout << '\n';
    std::ranges::sort(numbers);
    for (int n : numbers | std::views::filter([](int n) { return n % 2; }) | std::views::transform([](int n) { return n * n; }))
        std::cout << n << ' ';
    std::cout << '\n';
    std::rotate(numbers.begin(), numbers.begin() + 3, numbers.end());
    auto middle = std::partition(numbers.begin(), numbers.end(), [](int n) { return n < 500; });
    std::cout << middle - numbers.begin() << ' ' << std::inner_product(numbers.begin(), numbers.end(), numbers.begin(), 0L) << '\n';
    std::string word = "abcd";
    int count = 0;
    do count++;
    while (std::next_permutation(word.begin(), word.end()));
    std::cout << count << ' ' << word << '\n';
    const long values[] = {84, 126, 210};
    std::cout << gcd_of(values) << ' ' << std::lcm(12, 18) << ' ' << std::midpoint(1, 6) << '\n';
    std::complex<double> z(3, 4);
    std::cout << std::abs(z) << ' ' << z * z << ' ' << std::hypot(5.0, 12.0) << ' ' << std::lround(2.5) << '\n';
    using namespace std::chrono_literals;
    std::cout << std::chrono::duration_cast<std::chrono::seconds>(90min + 1500ms).count() << '\n';
    std::filesystem::path path = "/usr/local/../lib/x.tar.gz";
    std::cout << path.lexically_normal().string() << ' ' << path.extension().string() << ' ' << path.stem().string() << '\n';
    std::smatch match;
    const std::string date = "on 2024-05-17.";
    if (std::regex_search(date, match, std::regex("(\\d+)-(\\d+)"))) std::cout << match[1] << '/' << match[2] << '\n';
    std::normal_distribution<double> normal(0, 1);
    double sum = 0;
    for (int i = 0; i < 100; i++) sum += normal(generator);
    std::cout << sum << '\n';
}
