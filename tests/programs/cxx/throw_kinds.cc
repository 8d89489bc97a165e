// Exceptions of every kind of type, caught by value, by reference, by pointer and by anything.
// build:
// build: -O2
// exec:
#include <cstdio>
#include <exception>
#include <string>

struct Base {
    int tag = 1;
    virtual ~Base() {}
    virtual const char *name() const { return "base"; }
};
struct Middle : Base {
    const char *name() const override { return "middle"; }
};
struct Other {
    long pad = 77;
    virtual ~Other() {}
};
struct Leaf : Other, Middle {
    int more = 9;
    const char *name() const override { return "leaf"; }
};
enum class Colour { red, green };

static void raise(int which) {
    static Leaf leaf;
    switch (which) {
    case 0: throw 42;
    case 1: throw 42L;
    case 2: throw 'c';
    case 3: throw 2.5;
    case 4: throw "text";
    case 5: throw Base();
    case 6: throw Middle();
    case 7: throw Leaf();
    case 8: throw &leaf;
    case 9: throw Colour::green;
    case 10: throw nullptr;
    case 11: throw std::string("a string that is too long for the small buffer");
    case 12: throw Other();
    default: throw &raise;
    }
}

int main() {
    for (int which = 0; which < 14; which++) {
        try {
            raise(which);
        } catch (int value) {
            printf("int %d\n", value);
        } catch (long value) {
            printf("long %ld\n", value);
        } catch (const char &value) {
            printf("char %c\n", value);
        } catch (double value) {
            printf("double %g\n", value);
        } catch (Base *pointer) {
            printf("pointer to %s\n", pointer ? pointer->name() : "nothing");
        } catch (const char *value) {
            printf("text %s\n", value);
        } catch (const Middle &value) {
            printf("middle or below: %s %d\n", value.name(), value.tag);
        } catch (Base value) {
            printf("base: %s\n", value.name());
        } catch (Colour colour) {
            printf("colour %d\n", static_cast<int>(colour));
        } catch (const std::string &value) {
            printf("string %s\n", value.c_str());
        } catch (void (*function)(int)) {
            printf("function %d\n", function == &raise);
        } catch (...) {
            printf("something else\n");
        }
    }
}
