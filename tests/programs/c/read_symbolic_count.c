// run:
// paths: 10
// finding: out-of-bounds 31
// A count that is not known: all counts beyond what there is to read are one path.
#include <everett.h>
#include <sys/socket.h>
#include <unistd.h>

static void fill(int fd) {
    if (write(fd, "abc", 3) != 3)
        _exit(9);
}

int main(void) {
    unsigned count;
    char large[100000];
    char small[4];
    int pipes[2], sockets[2];
    if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
        return 9;
    fill(pipes[1]);
    fill(sockets[1]);
    fill(sockets[1]);
    everett_make_symbolic(&count, sizeof count, "count");
    everett_assume(count <= sizeof large);
    if (everett_choose(2, "which")) {
        long got = read(pipes[0], large, count);
        return got < 3 ? (int)got : large[2] == 'c' ? 3 : 8;
    }
    everett_assume(count > 0);
    long got = recv(sockets[0], small, count, 0);
    return got < 3 ? (int)got : small[2] == 'c' ? 3 : 8;
}
