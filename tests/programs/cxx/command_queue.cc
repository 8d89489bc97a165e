// A priority queue and a deque driven by symbolic commands keep their order; popping an empty one is caught.
// build: -O2
// run:
// paths: 9
#include <everett.h>
#include <queue>
#include <stdexcept>

class Machine {
    std::priority_queue<int> queue;

  public:
    void step(unsigned char command) {
        if (command == 0) {
            if (queue.empty()) throw std::underflow_error("empty");
            queue.pop();
        } else if (command == 1) {
            queue.push(static_cast<int>(queue.size()));
        }
    }
    std::size_t size() const { return queue.size(); }
};

int main() {
    unsigned char commands[2];
    everett_make_symbolic(commands, sizeof commands, "commands");
    Machine machine;
    int failures = 0;
    for (unsigned char command : commands) {
        try {
            machine.step(command);
        } catch (const std::underflow_error &) {
            failures++;
        }
    }
    return static_cast<int>(machine.size()) * 10 + failures;
}
