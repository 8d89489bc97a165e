// A member that one constructor forgets is a wild pointer on that path.
// run:
// paths: 2
// finding: wild-pointer 17
#include <everett.h>
#include <new>

struct Holder {
    int *target;
    explicit Holder(int *t) : target(t) {}
    Holder() {}
};

static int use(unsigned char *place, bool forget) {
    static int number = 5;
    Holder *holder = forget ? new (place) Holder() : new (place) Holder(&number);
    return *holder->target;
}

int main() {
    unsigned char choice;
    everett_make_symbolic(&choice, sizeof choice, "choice");
    alignas(8) unsigned char place[sizeof(Holder)];
    for (unsigned char &byte : place) byte = 0x41;
    return use(place, choice == 1) - 5;
}
