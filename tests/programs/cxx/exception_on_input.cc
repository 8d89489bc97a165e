// A reader of symbolic standard input that throws; the handler frees too much for one kind of error.
// run:
// args: --sym-stdin 3
// finding: double-free 34
#include <cstdio>
#include <memory>
#include <stdexcept>

struct Buffer {
    char *data = new char[8];
    std::size_t used = 0;
    void append(int c) {
        if (c == '\n') throw std::invalid_argument("line");
        if (c == 0) throw std::domain_error("zero");
        data[used++] = static_cast<char>(c);
    }
};

static int read_all(Buffer &buffer) {
    try {
        for (int c; (c = std::getchar()) != EOF;) buffer.append(c);
    } catch (const std::domain_error &) {
        delete[] buffer.data;
        return 1;
    } catch (const std::logic_error &) {
        return 2;
    }
    return 0;
}

int main() {
    Buffer buffer;
    int result = read_all(buffer);
    delete[] buffer.data;
    return result;
}
