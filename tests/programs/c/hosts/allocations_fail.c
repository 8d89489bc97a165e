// Each member of the family fails once, also inside of the libc, in a thread and in another process, or none does.
// run: --faults 1 --fault malloc
// paths: 13
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed;

static void *check(const char *name, void *block) {
    if (!block && !failed) {
        failed = 1;
        printf("%s: %s\n", name, strerror(errno));
        fflush(stdout);
    }
    return block;
}

static void *in_thread(void *unused) {
    errno = 0;
    free(check("malloc in a thread", malloc(10)));
    return unused;
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    free(check("malloc", malloc(1000)));
    free(check("calloc", calloc(10, 10)));
    char *block = check("realloc of nothing", realloc(NULL, 10));
    char *larger = check("realloc", realloc(block, 10000));
    free(larger ? larger : block);
    free(check("reallocarray", reallocarray(NULL, 3, 5)));
    free(check("aligned_alloc", aligned_alloc(64, 128)));
    void *aligned = NULL;
    int error = posix_memalign(&aligned, 64, 128);
    if (error)
        printf("posix_memalign: %s\n", strerror(error));
    free(aligned);
    free(check("strdup", strdup("copy")));
    char *text = NULL;
    if (asprintf(&text, "%d", 12) < 0)
        text = check("asprintf", NULL);
    free(text);
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL) == 0)
        pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        free(check("malloc in a child", malloc(20)));
        _exit(failed);
    }
    int status = 0;
    waitpid(child, &status, 0);
    free(check("malloc after it", malloc(20)));
    return failed + 2 * WEXITSTATUS(status);
}
