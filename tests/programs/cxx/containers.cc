// The containers of the standard library.
// build:
// build: -O2
// exec:
#include <algorithm>
#include <array>
#include <bitset>
#include <deque>
#include <iostream>
#include <list>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <stack>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

template <class T> static void show(const char *name, const T &items) {
    std::cout << name << ':';
    for (const auto &item : items) std::cout << ' ' << item;
    std::cout << '\n';
}

int main() {
    std::vector<int> numbers;
    for (int i = 0; i < 40; i++) numbers.push_back(i * 37 % 41);
    std::sort(numbers.begin(), numbers.end(), std::greater<int>());
    show("sorted", numbers);
    numbers.erase(std::remove_if(numbers.begin(), numbers.end(), [](int n) { return n % 3; }), numbers.end());
    numbers.insert(numbers.begin() + 2, 5, -1);
    show("thirds", numbers);
    std::cout << std::accumulate(numbers.begin(), numbers.end(), 0) << ' ' << *std::max_element(numbers.begin(), numbers.end()) << '\n';
    std::map<std::string, int> counts;
    for (const char *word : {"the", "quick", "brown", "fox", "the", "lazy", "dog", "the"}) counts[word]++;
    for (auto &[word, count] : counts) std::cout << word << '=' << count << ' ';
    std::cout << counts.count("cat") << '\n';
    counts.erase("the");
    std::cout << counts.lower_bound("g")->first << '\n';
    std::unordered_map<int, std::string> names;
    for (int i = 0; i < 100; i++) names[i * i] = std::to_string(i);
    names.erase(9);
    std::cout << names.size() << ' ' << names.at(49) << ' ' << names.count(9) << '\n';
    std::unordered_set<std::string> seen{"a", "b", "a", "a string longer than the small buffer of strings"};
    std::cout << seen.size() << '\n';
    std::deque<int> line;
    for (int i = 0; i < 2000; i++) (i % 2 ? line.push_back(i) : line.push_front(i));
    std::cout << line.front() << ' ' << line.back() << ' ' << line[1000] << '\n';
    std::list<int> chain{5, 3, 9, 1};
    chain.sort();
    chain.reverse();
    show("chain", chain);
    std::multiset<char> letters{'z', 'a', 'm', 'a'};
    show("letters", letters);
    std::priority_queue<int> heap;
    for (int n : {3, 8, 1, 9, 4}) heap.push(n);
    while (!heap.empty()) std::cout << heap.top() << ' ', heap.pop();
    std::stack<int, std::vector<int>> stack;
    stack.push(1);
    stack.push(2);
    std::cout << stack.top() << '\n';
    std::bitset<20> bits(0x2a5);
    std::cout << bits << ' ' << bits.count() << '\n';
    std::array<int, 5> fixed{4, 2, 5, 1, 3};
    std::nth_element(fixed.begin(), fixed.begin() + 2, fixed.end());
    std::cout << fixed[2] << ' ' << std::binary_search(numbers.begin(), numbers.end(), 12345) << '\n';
    std::vector<bool> flags(70);
    flags[69] = flags[3] = true;
    std::cout << std::count(flags.begin(), flags.end(), true) << '\n';
    std::stable_sort(chain.begin() == chain.end() ? numbers.begin() : numbers.begin(), numbers.end());
    show("stable", numbers);
}
