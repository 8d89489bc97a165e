// Reading an empty optional and the wrong alternative of a variant on some paths.
// run:
// paths: 5
// finding: uncaught-exception 18
// finding: uncaught-exception 20
#include <everett.h>
#include <optional>
#include <variant>

int main() {
    unsigned char choice;
    everett_make_symbolic(&choice, sizeof choice, "choice");
    std::optional<int> maybe;
    std::variant<int, double> either = 1.5;
    if (choice != 1) maybe = 4;
    if (choice == 2) either = 3;
    if (choice < 2)
        return maybe.value();
    if (choice < 100)
        return std::get<int>(either);
    return 0;
}
