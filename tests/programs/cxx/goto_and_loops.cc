// Handlers left by break, continue, goto and return, in loops, with objects on the way.
// exec:
// build: -O1
#include <cstdio>
#include <string>
#include <vector>

struct Trace {
    int id;
    explicit Trace(int i) : id(i) {}
    ~Trace() { printf("~%d ", id); }
};

static int walk(int limit) {
    for (int i = 0; i < 10; i++) {
        Trace outer(i);
        try {
            Trace inner(100 + i);
            if (i == 1) continue;
            if (i == 2) throw i;
            if (i == 3) throw std::string("three");
            if (i == limit) throw 4.5;
        } catch (int value) {
            Trace handler(200 + value);
            continue;
        } catch (const std::string &text) {
            if (text.size() == 5) goto next;
            return -1;
        } catch (double value) {
            try {
                throw;
            } catch (double &again) {
                again += 1;
                return static_cast<int>(again * 10);
            }
        }
    next:
        printf("| ");
    }
    return 0;
}

int main() {
    for (int limit : {5, 20}) printf("= %d\n", walk(limit));
    std::vector<std::string> words;
    int failures = 0;
    for (int i = 0; i < 20; i++) {
        try {
            std::string word(i, 'x');
            if (i % 3 == 0) throw word;
            words.push_back(word.substr(5));
        } catch (const std::string &) {
            failures++;
        } catch (const std::exception &) {
            failures += 100;
        }
    }
    printf("%d %zu\n", failures, words.size());
}
