// Keywords in a map of strings; one of them is not implemented.
// build: -O2
// run:
// finding: uncaught-exception 19
#include <everett.h>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

int main() {
    char word[3];
    everett_make_symbolic(word, sizeof word, "word");
    word[2] = '\0';
    const std::map<std::string, std::function<int()>> commands{
        {"go", [] { return 1; }},
        {"in", [] { return 2; }},
        {"up", []() -> int {
             throw std::runtime_error("not implemented");
         }},
    };
    auto found = commands.find(word);
    return found == commands.end() ? 0 : found->second();
}
