// A lock as Cloud9's paper builds it (its Fig. 5), between threads and between processes; then a queue on which a
// thread waits that nobody wakes.
// run:
// args: --sym-stdin 1
// paths: 2
// finding: deadlock 90
#include <cloud9.h>
#include <stdio.h>
#include <sys/wait.h>

struct mutex {
    wlist_id_t wlist;
    char taken;
    unsigned queued;
};

struct shared {
    struct mutex lock;
    int sum;
    int32_t pids[2];
};

static struct shared *all;
static uint64_t tids[2];
static wlist_id_t done;
static int left = 2;

static void lock(struct mutex *mutex) {
    if (mutex->queued > 0 || mutex->taken) {
        mutex->queued++;
        cloud9_thread_sleep(mutex->wlist);
        mutex->queued--;
    }
    mutex->taken = 1;
}

static void unlock(struct mutex *mutex) {
    mutex->taken = 0;
    if (mutex->queued > 0)
        cloud9_thread_notify(mutex->wlist);
}

static void add(void) {
    lock(&all->lock);
    int before = all->sum;
    cloud9_thread_preempt();
    all->sum = before + 1;
    unlock(&all->lock);
}

static void *work(void *at) {
    cloud9_get_context(&tids[*(int *)at], NULL);
    add();
    if (--left == 0)
        cloud9_thread_notify_all(done);
    cloud9_thread_terminate();
}

int main(void) {
    static int numbers[2] = {0, 1};
    char input = 0;
    all = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    all->sum = 5;
    if (cloud9_make_shared(all, 4096) || cloud9_make_shared(&left, sizeof left) == 0)
        return 1;
    all->lock.wlist = cloud9_get_wlist();
    done = cloud9_get_wlist();
    for (int i = 0; i < 2; i++)
        if (cloud9_thread_create(70 + i, work, &numbers[i]))
            return 2;
    if (left > 0)
        cloud9_thread_sleep(done);
    if (all->sum != 7 || tids[0] != 70 || tids[1] != 71)
        return 3;
    for (int i = 0; i < 2; i++) {
        int32_t made = cloud9_process_fork(40 + i);
        if (made == 0) {
            cloud9_get_context(NULL, &all->pids[i]);
            add();
            cloud9_process_terminate();
        }
        if (made != 40 + i)
            return 4;
    }
    while (wait(NULL) > 0)
        ;
    if (all->sum != 9 || all->pids[0] != 40 || all->pids[1] != 41)
        return 5;
    if (read(0, &input, 1) == 1 && input == 's')
        cloud9_thread_sleep(cloud9_get_wlist());
    puts("all are done");
    return 0;
}
