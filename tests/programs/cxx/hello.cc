// Output through iostream, with manipulators.
// exec: one two
#include <iomanip>
#include <iostream>

int main(int argc, char **argv) {
    std::cout << "hello, world\n" << argc << ' ' << argv[1] << std::endl;
    std::cout << std::hex << 255 << ' ' << std::dec << std::setw(6) << 42 << '|' << std::setfill('*')
              << std::left << std::setw(6) << -7 << "|\n";
    std::cout << 3.25 << ' ' << std::fixed << std::setprecision(3) << 2.0 / 3 << ' ' << std::scientific << 12345.678
              << ' ' << std::boolalpha << (argc > 1) << '\n';
    std::cerr << "to the error stream\n";
    return 3;
}
