// exec: first
// The file of the running program: it can be read and copied, and nobody can write it.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int copy(int to) {
  int from = open("/proc/self/exe", O_RDONLY);
  char bytes[65536];
  ssize_t n;
  while ((n = read(from, bytes, sizeof bytes)) > 0)
    if (write(to, bytes, n) != n)
      return -1;
  return close(from);
}

static void run(const char *what, int fd, const char *path, int flags) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    char *args[] = {"child", (char *)what, 0};
    syscall(SYS_execveat, fd, path, args, environ, flags);
    printf("%s: %s\n", what, strerror(errno));
    exit(1);
  }
  int status;
  waitpid(child, &status, 0);
  printf("%s: exit %d\n", what, WEXITSTATUS(status));
}

static void show(const char *what, int answer) { printf("%s: %d %s\n", what, answer, strerror(errno)); }

static int started(const char *how) {
  char name[200] = {0};
  ssize_t n = readlink("/proc/self/exe", name, sizeof name - 1);
  const char *base = n > 0 ? strrchr(name, '/') : "";
  printf("started: %s, %s\n", how, base);
  if (strcmp(how, "a copy") == 0) {
    unlink("copy");
    int fd = open("/proc/self/exe", O_RDONLY);
    struct stat status;
    fstat(fd, &status);
    n = readlink("/proc/self/exe", name, sizeof name - 1);
    printf("links %d, readable %d, deleted %d\n", (int)status.st_nlink, status.st_size > 1000,
           strstr(name, " (deleted)") != 0);
  }
  return 7;
}

int main(int argc, char **argv) {
  if (argc == 2)
    return started(argv[1]);
  char folder[] = "/tmp/own-file-XXXXXX";
  if (!mkdtemp(folder) || chdir(folder))
    return 1;
  int own = open("/proc/self/exe", O_RDONLY);
  struct stat status;
  fstat(own, &status);
  Elf64_Ehdr header;
  ssize_t got = read(own, &header, sizeof header);
  printf("header %d, ELF %d, 64 bits %d, long %d\n", got == sizeof header, memcmp(header.e_ident, ELFMAG, SELFMAG) == 0,
         header.e_ident[EI_CLASS] == ELFCLASS64, status.st_size > (off_t)(header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr)));
  const unsigned char *mapped = mmap(0, 4096, PROT_READ, MAP_PRIVATE, own, 0);
  printf("mapped %d\n", memcmp(mapped, &header, sizeof header) == 0);
  show("write", open("/proc/self/exe", O_WRONLY));
  show("truncate", truncate("/proc/self/exe", 0));
  show("open to truncate", open("/proc/self/exe", O_RDONLY | O_TRUNC));

  int fd = open("copy", O_CREAT | O_RDWR, 0700);
  copy(fd);
  run("while it is written", AT_FDCWD, "copy", 0);
  close(fd);
  chmod("copy", 0600);
  run("without permission", AT_FDCWD, "copy", 0);
  chmod("copy", 0700);
  int here = open(".", O_RDONLY | O_DIRECTORY);
  run("from a folder", here, "copy", 0);
  symlink("copy", "link");
  run("through a link", here, "link", 0);
  run("not through a link", here, "link", AT_SYMLINK_NOFOLLOW);
  run("a folder", here, "", AT_EMPTY_PATH);
  run("no path", here, "", 0);
  run("unknown flag", here, "copy", 1);
  run("the open program", own, "", AT_EMPTY_PATH);
  run("a copy", AT_FDCWD, "copy", 0);
  run("no more", AT_FDCWD, "copy", 0);

  int memory = memfd_create("program", MFD_CLOEXEC);
  copy(memory);
  run("memory that is open", memory, "", AT_EMPTY_PATH);
  char path[50];
  sprintf(path, "/proc/self/fd/%d", memory);
  int reader = open(path, O_RDONLY | O_CLOEXEC);
  close(memory);
  run("memory", reader, "", AT_EMPTY_PATH);

  fd = open("text", O_CREAT | O_WRONLY, 0700);
  write(fd, "hello\n", 6);
  close(fd);
  run("text", AT_FDCWD, "text", 0);
  unlink("text");
  unlink("link");
  return rmdir(folder);
}
