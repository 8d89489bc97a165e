// An iterator of a map is used after its element was erased.
// run:
// paths: 5
// finding: use-after-free 17
#include <everett.h>
#include <map>

int main() {
    unsigned char key;
    everett_make_symbolic(&key, sizeof key, "key");
    std::map<int, int> table{{10, 1}, {20, 2}};
    auto found = table.find(key);
    if (found == table.end()) return 1;
    int value = found->second;
    if (value == 1) {
        table.erase(found);
        value = found->second;
    }
    return value;
}
