// So many system calls that do nothing.
#include <unistd.h>
#include <sys/syscall.h>
#include <stdlib.h>
int main(int argc, char **argv) { for (int i = 0; i < atoi(argv[1]); i++) syscall(SYS_getppid); return 0; }
