// exec:
#include "files.h"
#include <sys/mman.h>

int main(void) {
  start_in("files-nameless");
  // A file that never had a name, and then gets one.
  int fd = open(".", O_TMPFILE | O_RDWR, 0640);
  TRY(fd >= 0);
  TRY(write(fd, "nameless", 8));
  struct stat status;
  fstat(fd, &status);
  printf("%o %ld %ld\n", status.st_mode, (long)status.st_nlink, (long)status.st_size);
  show_folder(".");
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  TRY(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
  show_file("named");
  show_status("named");
  TRY(linkat(fd, "", AT_FDCWD, "second", AT_EMPTY_PATH));
  show_status("second");
  TRY(open(".", O_TMPFILE | O_RDONLY, 0600));
  TRY(open("named", O_TMPFILE | O_RDWR, 0600));
  // A file whose last name is taken away is there for those who have it open.
  make_file("gone", "still here");
  int kept = open("gone", O_RDWR);
  TRY(unlink("gone"));
  TRY(open("gone", O_RDONLY));
  char text[32] = "";
  TRY(read(kept, text, 31));
  printf("%s\n", text);
  TRY(pwrite(kept, "now", 3, 6));
  TRY(pread(kept, text, 31, 0));
  printf("%s\n", text);
  fstat(kept, &status);
  printf("%ld links\n", (long)status.st_nlink);
  // Memory as a file.
  int memory = memfd_create("name", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  TRY(fcntl(memory, F_GETFD));
  TRY(ftruncate(memory, 100));
  TRY(pwrite(memory, "abc", 3, 50));
  TRY(lseek(memory, 0, SEEK_END));
  TRY(fcntl(memory, F_GET_SEALS));
  TRY(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK));
  TRY(ftruncate(memory, 50));
  TRY(ftruncate(memory, 150));
  TRY(fcntl(memory, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_WRITE));
  TRY(ftruncate(memory, 200));
  TRY(write(memory, "x", 1));
  TRY(fcntl(memory, F_ADD_SEALS, F_SEAL_SEAL));
  TRY(fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE));
  TRY(fcntl(memory, F_GET_SEALS));
  TRY(fcntl(memfd_create("plain", 0), F_GET_SEALS));
  TRY(fcntl(kept, F_GET_SEALS));
  TRY(memfd_create("name", 0x8000));
  return 0;
}
