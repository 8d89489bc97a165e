// exec:
#include "files.h"

#include <sys/socket.h>
#include <sys/un.h>

static void where(void) {
  char path[4096];
  long length = syscall(SYS_getcwd, path, sizeof path);
  // What lies above the folder of the test is not the same everywhere.
  char *shown = length > 0 ? strstr(path, "/files-chroot") : NULL;
  int is_unreachable = length > 0 && !strncmp(path, "(unreachable)", 13);
  printf("in %s%s\n", is_unreachable ? "(unreachable) " : "", shown ? shown : path);
  fflush(stdout);
}

int main(void) {
  start_in("files-chroot");
  TRY(mkdir("new", 0755));
  TRY(mkdir("new/below", 0755));
  TRY(mkdir("outside", 0755));
  make_file("new/file", "inside\n");
  make_file("outside/other", "outside\n");
  TRY(symlink("/file", "new/absolute"));
  TRY(symlink("../../../../../../../../file", "new/below/up"));
  TRY(chroot("none"));
  TRY(chroot("new/file"));
  int outside = open("outside", O_DIRECTORY);
  pid_t child = fork();
  if (child == 0) {
    TRY(chdir("new"));
    TRY(chroot("."));
    where();
    TRY(access("/file", F_OK));
    TRY(access("/below/../../../file", F_OK));
    TRY(access("/absolute", F_OK));
    TRY(access("/below/up", F_OK));
    TRY(access("../outside", F_OK));
    TRY(chdir("below"));
    where();
    TRY(chdir("../../../.."));
    where();
    int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/below/socket"};
    TRY(bind(socket_fd, (struct sockaddr *)&name, sizeof name));
    TRY(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name));
    // A directory that was opened before leads out again.
    TRY(fchdir(outside));
    where();
    TRY(access("other", F_OK));
    TRY(access("../new/below/socket", F_OK));
    TRY(access("/outside", F_OK));
    TRY(chroot("/below"));
    TRY(access("/socket", F_OK));
    TRY(setresuid(1000, 1000, 1000));
    TRY(chroot("/"));
    TRY(chroot("/none"));
    exit(0);
  }
  waitpid(child, NULL, 0);
  where();
  TRY(access("new/below/socket", F_OK));
}
