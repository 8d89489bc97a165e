// A tree of five keys has eleven outcomes for a key that is looked up: each key, and each gap.
// run:
// paths: 11
#include <everett.h>
#include <map>

int main() {
    int key;
    everett_make_symbolic(&key, sizeof key, "key");
    std::map<int, char> table{{3, 'a'}, {7, 'b'}, {12, 'c'}, {40, 'd'}, {90, 'e'}};
    auto found = table.lower_bound(key);
    if (found == table.end()) return 1;
    return found->first == key ? found->second : found->first;
}
