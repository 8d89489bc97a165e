// Waits for a timer, for ever.
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (;;) usleep(atoi(argv[1]));
}
