/* The protocol of jobs of a cluster (docs/cluster.md), as a model: a broker that hands out jobs under leases, and
 * workers that explore them, give a part to an idle one, and go on with the rest. A job is a range of paths.
 *
 *     jobs broker [overwrites]  keeps the queue and the outcomes; exposes what is finished, and what is lost. With
 *                               `overwrites` the last outcome of a job counts, not the first: a mistake
 *     jobs worker [hasty]       takes jobs until all are done. A `hasty` one takes a job from the queue before it has
 *                               handed out the rest of it: a mistake
 *
 * An idle worker is the balancer: it notes that it wants work, and a busy one sees that when it extends its lease.
 * Workers do not look for jobs that nobody has: what that would mend is to be seen here. */
#include <arpa/inet.h>
#include <everett.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 7000, WHOLE = 4, MOST_JOBS = WHOLE * (WHOLE + 1) / 2, MOST_CHILDREN = 2 };
enum { LEASE_MS = 400, STEP_MS = 20, ANSWER_MS = 100, IDLE_MS = 150, MOST_TRIES = 30 };
enum op { TAKE, EXTEND, RECORD, PUBLISH, ACKNOWLEDGE, WANT };
enum answer { NOTHING, OVER, JOB, OK };

/* A set of paths: those from `from` on, before `to`. It names a job, too: ranges of recorded jobs are different. */
struct range {
    unsigned char from, to;
};

/* What a job came to: it explored the paths before `finished`, and left children; the worker keeps the first one. */
struct outcome {
    unsigned char is_recorded, finished, children, keeps_first;
    struct range child[MOST_CHILDREN];
};

struct message {
    unsigned char what, number, wanted, delivery;
    struct range job, other; /* `other`: what is published, or the job of an outcome */
    unsigned char is_leased[MOST_CHILDREN];
    struct outcome outcome;
};

struct job {
    struct range range;
    unsigned char is_queued, was_leased, delivery;
    long until_ms; /* the lease ends then */
    struct outcome outcome;
};

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct job jobs[MOST_JOBS];
static int count;

static struct job *job_of(struct range range) {
    for (int i = 0; i < count; i++)
        if (jobs[i].range.from == range.from && jobs[i].range.to == range.to)
            return &jobs[i];
    if (count == MOST_JOBS)
        abort();
    jobs[count].range = range;
    return &jobs[count++];
}

/* Counts how often the tree of outcomes has each path, and whether each job without an outcome is in the queue, or
 * one that it comes of. */
static void account(struct range range, int is_safe, unsigned char *times, int *lost) {
    struct job *job = job_of(range);
    is_safe |= job->is_queued;
    if (!job->outcome.is_recorded) {
        *lost |= !is_safe;
        return;
    }
    for (int path = range.from; path < job->outcome.finished; path++)
        times[path]++;
    for (int i = 0; i < job->outcome.children; i++)
        account(job->outcome.child[i], is_safe, times, lost);
}

static void expose(void) {
    unsigned char times[WHOLE] = {0};
    int lost = 0, twice = 0, finished = 0;
    account((struct range){0, WHOLE}, 0, times, &lost);
    for (int path = 0; path < WHOLE; path++) {
        finished += times[path] > 0;
        twice += times[path] > 1;
    }
    everett_expose("0", "lost", &lost, sizeof lost);
    everett_expose("0", "twice", &twice, sizeof twice);
    everett_expose("0", "finished", &finished, sizeof finished);
}

static enum answer take(struct message *message) {
    int is_over = 1;
    for (int i = 0; i < count; i++) {
        struct job *job = &jobs[i];
        is_over &= !job->is_queued;
        if (!job->is_queued || job->until_ms > now_ms())
            continue;
        job->until_ms = now_ms() + LEASE_MS;
        job->was_leased = 1;
        message->delivery = ++job->delivery;
        message->job = job->range;
        message->outcome = job->outcome;
        for (int child = 0; child < job->outcome.children; child++) {
            struct job *other = job_of(job->outcome.child[child]);
            message->is_leased[child] = other->was_leased || other->outcome.is_recorded;
        }
        return JOB;
    }
    return is_over ? OVER : NOTHING;
}

static int serve(int fd, int overwrites) {
    int is_wanted = 0;
    jobs[0] = (struct job){.range = {0, WHOLE}, .is_queued = 1};
    count = 1;
    expose();
    for (;;) {
        struct message message;
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        if (recvfrom(fd, &message, sizeof message, 0, (struct sockaddr *)&from, &size) != sizeof message)
            return 2;
        enum answer answer = OK;
        struct job *job = message.what == TAKE || message.what == WANT ? NULL : job_of(message.job);
        struct job *other = message.what == RECORD || message.what == PUBLISH ? job_of(message.other) : NULL;
        int is_holder = job && job->is_queued && job->delivery == message.delivery;
        switch (message.what) {
        case TAKE:
            answer = take(&message);
            is_wanted &= answer != JOB;
            break;
        case WANT:
            is_wanted = 1;
            break;
        case EXTEND:
            if (is_holder)
                job->until_ms = now_ms() + LEASE_MS;
            message.wanted = (unsigned char)is_wanted;
            break;
        case RECORD: /* the first outcome counts */
            if (!other->outcome.is_recorded || overwrites)
                other->outcome = message.outcome;
            message.outcome = other->outcome;
            break;
        case PUBLISH:
            if (!other->is_queued)
                other->until_ms = 0;
            other->is_queued = 1;
            break;
        case ACKNOWLEDGE: /* a late one, of a lease that was passed on, does nothing */
            if (is_holder)
                job->is_queued = 0;
            break;
        }
        expose();
        message.what = (unsigned char)answer;
        sendto(fd, &message, sizeof message, 0, (struct sockaddr *)&from, size);
    }
}

/* Asks the broker until it answers: every request may be repeated. */
static void ask(int fd, enum op op, struct message *message) {
    static unsigned char number;
    message->number = ++number;
    for (int i = 0; i < MOST_TRIES; i++) {
        struct message answer;
        message->what = (unsigned char)op;
        send(fd, message, sizeof *message, 0);
        while (recv(fd, &answer, sizeof answer, 0) == sizeof answer) {
            if (answer.number != number)
                continue;
            *message = answer;
            return;
        }
    }
    exit(3);
}

/* Hands out what a recorded outcome left. */
static void publish(int fd, struct message *message, const struct outcome *outcome, unsigned char mask) {
    for (int i = 0; i < outcome->children; i++) {
        if (!(mask >> i & 1))
            continue;
        message->other = outcome->child[i];
        ask(fd, PUBLISH, message);
    }
}

static int is_hasty;

static void settle(int fd, struct message *message, const struct outcome *outcome, unsigned char mask) {
    if (is_hasty)
        ask(fd, ACKNOWLEDGE, message);
    publish(fd, message, outcome, mask);
    if (!is_hasty)
        ask(fd, ACKNOWLEDGE, message);
}

/* Explores a job that was handed out, and its rest, as long as this worker's outcomes count. */
static void explore(int fd, struct message *message) {
    const unsigned char all = (1 << MOST_CHILDREN) - 1;
    struct range left = message->job;
    unsigned char start = left.from;
    if (message->outcome.is_recorded) {
        /* Another worker has recorded it, and died before it had handed out the rest. */
        struct outcome outcome = message->outcome;
        unsigned char mask = outcome.keeps_first;
        for (int i = 0; i < outcome.children; i++)
            mask |= (unsigned char)(!message->is_leased[i] << i);
        return settle(fd, message, &outcome, mask);
    }
    for (;;) {
        usleep(STEP_MS * 1000);
        left.from++;
        if (left.from < left.to)
            ask(fd, EXTEND, message);
        int gives = left.from < left.to && message->wanted && left.to - left.from > 1;
        if (left.from < left.to && !gives)
            continue;
        struct outcome outcome = {.is_recorded = 1, .finished = left.from};
        if (gives) {
            unsigned char middle = (unsigned char)((left.from + left.to + 1) / 2);
            outcome.children = 2;
            outcome.keeps_first = 1;
            outcome.child[0] = (struct range){left.from, middle};
            outcome.child[1] = (struct range){middle, left.to};
        }
        message->other = (struct range){start, left.to};
        message->outcome = outcome;
        ask(fd, RECORD, message);
        if (memcmp(&message->outcome, &outcome, sizeof outcome) != 0) {
            /* Another worker was faster: its outcome counts, and it hands out what that left. */
            outcome = message->outcome;
            return settle(fd, message, &outcome, all);
        }
        if (!gives)
            return settle(fd, message, &outcome, all);
        publish(fd, message, &outcome, 2);
        left = outcome.child[0];
        start = left.from;
    }
}

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    const char *mistake = argv[argc - 1];
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "broker") == 0) {
        if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
            return 2;
        return serve(fd, strcmp(mistake, "overwrites") == 0);
    }
    is_hasty = strcmp(mistake, "hasty") == 0;
    struct timeval wait = {.tv_usec = ANSWER_MS * 1000};
    inet_pton(AF_INET, "10.0.0.1", &address.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 2;
    for (;;) {
        struct message message = {0};
        ask(fd, TAKE, &message);
        if (message.what == OVER)
            return 0;
        if (message.what == JOB) {
            explore(fd, &message);
            continue;
        }
        ask(fd, WANT, &message);
        usleep(IDLE_MS * 1000);
    }
}
