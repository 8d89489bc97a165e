// Four bytes arrive in up to three pieces: 1 + 3 + 3 ways.
// run: --fragment 3
// paths: 7
#include <stdio.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    char buffer[8];
    ssize_t got;
    if (pipe(ends) < 0 || write(ends[1], "four", 4) != 4)
        return 1;
    close(ends[1]);
    while ((got = read(ends[0], buffer, sizeof buffer)) > 0)
        printf("%.*s\n", (int)got, buffer);
    return 0;
}
