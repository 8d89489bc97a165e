// A destructor that throws while another exception is on its way ends the program.
// exec:
// run:
// paths: 2
// finding: uncaught-exception 23
#include <everett.h>
#include <stdexcept>

struct Bomb {
    bool armed;
    ~Bomb() noexcept(false) {
        if (armed)
            throw 2;
    }
};

int main() {
    unsigned char armed = 0;
    everett_make_symbolic(&armed, sizeof armed, "armed");
    try {
        Bomb bomb{armed == 7};
        throw std::runtime_error("first");
    } catch (const std::runtime_error &) {
        return 1;
    } catch (int) {
        return 2;
    }
}
