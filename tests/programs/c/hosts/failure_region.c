// Only what lies in the region fails: one call, which does not wait, by moving fewer bytes.
// run: --faults 1 --fault-regions
// paths: 2
#include <everett.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    char buffer[8];
    if (pipe(ends) < 0)
        return 1;
    everett_faults_enable();
    ssize_t written = write(ends[1], "hello", 5);
    everett_faults_disable();
    if (written < 0)
        return 2;
    return read(ends[0], buffer, sizeof buffer) == written ? 0 : 3;
}
