// Strings, string streams, conversions and the exceptions that they throw.
// exec:
#include <charconv>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

template <class Work> static void attempt(const char *name, Work work) {
    try {
        std::cout << name << ' ' << work() << '\n';
    } catch (const std::out_of_range &error) {
        std::cout << name << " out of range: " << error.what() << '\n';
    } catch (const std::invalid_argument &error) {
        std::cout << name << " invalid: " << error.what() << '\n';
    } catch (const std::length_error &error) {
        std::cout << name << " length: " << error.what() << '\n';
    }
}

int main() {
    attempt("stoi", [] { return std::stoi("123abc"); });
    attempt("stoi", [] { return std::stoi("abc"); });
    attempt("stoi", [] { return std::stoi("99999999999"); });
    attempt("stol", [] { return std::stol("-7f", nullptr, 16); });
    attempt("stod", [] { return std::stod("2.75e3"); });
    attempt("stod", [] { return std::stod("1e999"); });
    attempt("at", [] { return std::string("abc").at(3); });
    attempt("substr", [] { return std::string("abc").substr(4); });
    attempt("reserve", [] { std::string s; s.reserve(~size_t(0)); return 0; });
    std::string text = "one two three two";
    text.replace(text.find("two"), 3, "2");
    text += std::string(3, '!');
    text.insert(0, "zero ");
    std::cout << text << ' ' << text.rfind("two") << ' ' << text.compare("zero") << ' ' << text.find_first_of("xyz") << '\n';
    std::string_view view(text);
    view.remove_prefix(5);
    std::cout << view.substr(0, 5) << ' ' << (view < "p") << '\n';
    std::istringstream in("10 20 thirty");
    int a = 0, b = 0, c = 5;
    in >> a >> b >> c;
    std::cout << a + b << ' ' << c << ' ' << in.fail() << '\n';
    std::ostringstream out;
    out << "x=" << 1.5f << " y=" << 'c' << " z=" << true << ' ' << static_cast<void *>(nullptr);
    std::cout << out.str() << ' ' << std::to_string(-1234567890123LL) << ' ' << std::to_string(0.1) << '\n';
    int parsed = 0;
    const char digits[] = "4711x";
    auto [end, error] = std::from_chars(digits, digits + 5, parsed);
    std::cout << parsed << ' ' << *end << ' ' << (error == std::errc()) << '\n';
    std::wstring wide = L"wide";
    std::cout << wide.size() << ' ' << std::string(wide.begin(), wide.end()) << '\n';
    std::cin.exceptions(std::ios::failbit);
    try {
        std::cin >> a;
    } catch (const std::ios_base::failure &failure) {
        std::cout << "stream failed\n";
    }
}
