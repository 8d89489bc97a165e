// Reading words, numbers and lines from standard input.
// exec:
// stdin: 12 0x1f word 3.5\nthe rest of it\nanother line\n
#include <iostream>
#include <string>

int main() {
    int number, other;
    std::string word, line;
    double real;
    std::cin >> number >> std::hex >> other >> word >> real;
    std::cout << number << ' ' << other << ' ' << word << ' ' << real << '\n';
    std::getline(std::cin, line);
    while (std::getline(std::cin, line)) std::cout << line.size() << ':' << line << '\n';
    std::cout << std::cin.eof() << std::cin.fail() << '\n';
    std::cin.clear();
    std::cin >> number;
    return std::cin.fail() ? 4 : 0;
}
