// A hash table with a symbolic key, and a leak on one path only.
// run: --check-leaks
// finding: leak 15
#include <everett.h>
#include <unordered_map>

int main() {
    unsigned char key;
    everett_make_symbolic(&key, sizeof key, "key");
    std::unordered_map<int, int> table;
    for (int i = 0; i < 4; i++) table[i * 10] = i;
    auto found = table.find(key);
    if (found == table.end()) return 0;
    if (found->second == 2)
        new int(5);
    return found->second;
}
