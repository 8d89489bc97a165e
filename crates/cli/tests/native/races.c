// Four classic races, and the same without them: `races NAME` runs one. Each ends in a failed assertion in a few of its
// schedules, and never where NAME ends in -ok.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Updates of a counter that get lost.
static int counter;
static void *count(void *unused) {
    for (int i = 0; i < 3; i++) counter++;
    return unused;
}
static void *count_ok(void *unused) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
static void counted(void) { assert(counter == 6); }

// Double-checked locking that publishes an object before it is initialised.
struct config {
    int value;
};
static struct config *_Atomic shared;
static void *use(void *unused) {
    struct config *c = atomic_load_explicit(&shared, memory_order_relaxed);
    if (!c) {
        pthread_mutex_lock(&lock);
        c = atomic_load_explicit(&shared, memory_order_relaxed);
        if (!c) {
            c = calloc(1, sizeof *c);
            atomic_store_explicit(&shared, c, memory_order_relaxed);
            c->value = 42;
        }
        pthread_mutex_unlock(&lock);
    }
    assert(c->value == 42);
    return unused;
}
static void *use_ok(void *unused) {
    struct config *c = atomic_load_explicit(&shared, memory_order_acquire);
    if (!c) {
        pthread_mutex_lock(&lock);
        c = atomic_load_explicit(&shared, memory_order_relaxed);
        if (!c) {
            c = calloc(1, sizeof *c);
            c->value = 42;
            atomic_store_explicit(&shared, c, memory_order_release);
        }
        pthread_mutex_unlock(&lock);
    }
    assert(c->value == 42);
    return unused;
}

// A check whose result is outdated when it is acted upon.
static atomic_int balance = 100;
static void *withdraw(void *unused) {
    if (atomic_load(&balance) >= 60) atomic_fetch_sub(&balance, 60);
    return unused;
}
static void *withdraw_ok(void *unused) {
    int seen = atomic_load(&balance);
    while (seen >= 60 && !atomic_compare_exchange_weak(&balance, &seen, seen - 60)) {}
    return unused;
}
static void withdrawn(void) { assert(atomic_load(&balance) >= 0); }

// A lock-free stack whose top is the same again, and means something else (ABA).
struct node {
    struct node *next;
    int owned;
};
static struct node nodes[3];
static struct node *_Atomic top;
static void push(struct node *n) {
    struct node *old = atomic_load(&top);
    do n->next = old;
    while (!atomic_compare_exchange_weak(&top, &old, n));
}
static struct node *pop(void) {
    struct node *old = atomic_load(&top);
    while (old && !atomic_compare_exchange_weak(&top, &old, old->next)) {}
    return old;
}
static void own(struct node *n) {
    if (n) assert(!n->owned++);
}
static void *take_one(void *unused) {
    own(pop());
    return unused;
}
static void *take_two(void *unused) {
    struct node *a = pop();
    own(pop());
    if (a) push(a);
    return unused;
}
static void *take_one_ok(void *unused) {
    pthread_mutex_lock(&lock);
    own(pop());
    pthread_mutex_unlock(&lock);
    return unused;
}
static void *take_two_ok(void *unused) {
    pthread_mutex_lock(&lock);
    take_two(unused);
    pthread_mutex_unlock(&lock);
    return unused;
}
static void taken(void) {
    for (struct node *n; (n = pop());) own(n);
}

static void nothing(void) {}

static const struct race {
    const char *name;
    void *(*first)(void *), *(*second)(void *);
    void (*check)(void);
} races[] = {
    {"counter", count, count, counted},
    {"counter-ok", count_ok, count_ok, counted},
    {"lazy", use, use, nothing},
    {"lazy-ok", use_ok, use_ok, nothing},
    {"balance", withdraw, withdraw, withdrawn},
    {"balance-ok", withdraw_ok, withdraw_ok, withdrawn},
    {"stack", take_one, take_two, taken},
    {"stack-ok", take_one_ok, take_two_ok, taken},
};

int main(int argc, char **argv) {
    for (int i = 0; i < 3; i++) push(&nodes[i]);
    for (size_t i = 0; argc == 2 && i < sizeof races / sizeof *races; i++) {
        if (strcmp(races[i].name, argv[1])) continue;
        pthread_t a, b;
        pthread_create(&a, 0, races[i].first, 0);
        pthread_create(&b, 0, races[i].second, 0);
        pthread_join(a, 0);
        pthread_join(b, 0);
        races[i].check();
        return 0;
    }
    return 2;
}
