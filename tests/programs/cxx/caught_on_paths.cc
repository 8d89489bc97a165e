// Exceptions of different types on different paths, all caught.
// build:
// build: -O2
// run:
// paths: 5
#include <everett.h>
#include <stdexcept>
#include <string>

static int check(unsigned char value) {
    if (value < 10) throw std::invalid_argument("small");
    if (value > 200) throw std::out_of_range("large");
    if (value == 42) throw 42;
    if (value == 43) throw std::string("forty-three");
    return 0;
}

int main() {
    unsigned char value;
    everett_make_symbolic(&value, sizeof value, "value");
    try {
        return check(value);
    } catch (const std::out_of_range &) {
        return 1;
    } catch (const std::logic_error &) {
        return 2;
    } catch (int number) {
        return number;
    } catch (...) {
        return 3;
    }
}
