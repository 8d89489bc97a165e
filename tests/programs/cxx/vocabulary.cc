// optional, variant, any, smart pointers, tuples, lambdas and std::function.
// exec:
#include <any>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

struct Node : std::enable_shared_from_this<Node> {
    int value;
    std::shared_ptr<Node> next;
    std::weak_ptr<Node> back;
    explicit Node(int v) : value(v) {}
    ~Node() { printf("~node %d\n", value); }
};

template <class... T> struct Overloaded : T... {
    using T::operator()...;
};
template <class... T> Overloaded(T...) -> Overloaded<T...>;

static std::optional<int> half(int n) { return n % 2 ? std::nullopt : std::optional<int>(n / 2); }

template <int N> struct Fibonacci {
    static constexpr int value = Fibonacci<N - 1>::value + Fibonacci<N - 2>::value;
};
template <> struct Fibonacci<0> { static constexpr int value = 0; };
template <> struct Fibonacci<1> { static constexpr int value = 1; };

template <class... T> static auto total(T... items) { return (items + ... + 0); }

int main() {
    printf("%d %d\n", half(8).value(), half(7).value_or(-1));
    try {
        printf("%d\n", half(7).value());
    } catch (const std::bad_optional_access &error) {
        printf("%s\n", error.what());
    }
    std::vector<std::variant<int, double, std::string>> items{1, 2.5, "three"};
    for (auto &item : items)
        std::visit(Overloaded{[](int n) { printf("int %d\n", n); }, [](double d) { printf("double %g\n", d); },
                              [](const std::string &s) { printf("string %s\n", s.c_str()); }},
                   item);
    try {
        printf("%d\n", std::get<int>(items[1]));
    } catch (const std::bad_variant_access &error) {
        printf("%s\n", error.what());
    }
    std::any anything = std::string("any");
    printf("%s %d\n", std::any_cast<std::string>(anything).c_str(), std::any_cast<int>(&anything) == nullptr);
    auto first = std::make_shared<Node>(1);
    first->next = std::make_shared<Node>(2);
    first->next->back = first;
    std::weak_ptr<Node> watch = first->next;
    printf("%ld %ld %d\n", first.use_count(), first->shared_from_this().use_count(), watch.expired());
    first.reset();
    printf("%d\n", watch.expired());
    auto deleter = [](int *p) { printf("delete %d\n", *p); delete p; };
    std::unique_ptr<int, decltype(deleter)> owned(new int(5), deleter);
    auto moved = std::move(owned);
    printf("%d\n", owned == nullptr);
    int base = 10;
    std::function<int(int)> add = [&base](int n) { return base + n; };
    std::function<int(int)> factorial = [&](int n) { return n < 2 ? 1 : n * factorial(n - 1); };
    base = 20;
    printf("%d %d\n", add(1), factorial(10));
    std::function<int(int)> empty;
    try {
        empty(1);
    } catch (const std::bad_function_call &) {
        printf("bad call\n");
    }
    auto counter = [n = 0]() mutable { return ++n; };
    counter();
    printf("%d\n", counter());
    auto [a, b, c] = std::make_tuple(1, 'x', 2.5);
    printf("%d %c %g %d %d\n", a, b, c, Fibonacci<20>::value, total(1, 2, 3, 4));
    auto bound = std::bind(std::minus<int>(), std::placeholders::_2, std::placeholders::_1);
    printf("%d\n", bound(3, 10));
}
