// Files through fstream, wide characters, locales, formatting flags and errors of streams.
// exec:
// build: -O1
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <system_error>

int main() {
    {
        std::ofstream out("notes.txt");
        for (int i = 0; i < 3; i++) out << "note " << i << '\n';
    }
    std::fstream both("notes.txt", std::ios::in | std::ios::out);
    both.seekp(5);
    both << 'X';
    both.seekg(0);
    std::string all((std::istreambuf_iterator<char>(both)), std::istreambuf_iterator<char>());
    std::cout << all << both.tellg() << '\n';
    std::remove("notes.txt");
    std::ifstream missing("notes.txt");
    std::cout << missing.is_open() << missing.fail() << '\n';
    std::wstringstream wide;
    wide << L"w" << 12 << L' ' << std::hex << 255;
    std::wstring word;
    wide >> word;
    std::cout << word.size() << '\n';
    std::stringstream in("7 8x 9\n3.5e2 inf");
    int a, b, c = -1;
    double d = 0;
    in >> a >> b >> c;
    std::cout << a << b << c << in.fail();
    in.clear();
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    in >> d;
    std::cout << ' ' << d << '\n';
    std::cout << std::showpos << 5 << std::noshowpos << ' ' << std::showbase << std::oct << 8 << std::dec << ' '
              << std::uppercase << std::hexfloat << 1.5 << std::defaultfloat << ' ' << std::quoted("a \"b\"") << ' '
              << std::internal << std::setfill('0') << std::setw(6) << -42 << '\n';
    std::cout << std::isalpha('x', std::locale::classic()) << std::toupper('x', std::locale()) << '\n';
    try {
        throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory), "open");
    } catch (const std::system_error &error) {
        std::cout << error.what() << ' ' << error.code().value() << '\n';
    }
    try {
        std::locale missing_locale("no_SUCH");
    } catch (const std::runtime_error &) {
        std::cout << "no locale\n";
    }
}
