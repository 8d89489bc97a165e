#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
struct node { struct node *next; char name[13]; int value; };
static jmp_buf place;
static sigjmp_buf far;
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void *work(void *argument) {
  struct node *list = 0;
  int sum = 0, count = *(int *)argument;
  for (int round = 0; round < 200; round++) {
    struct node *node = malloc(sizeof *node);
    snprintf(node->name, sizeof node->name, "n%d", round);
    node->value = round;
    node->next = list;
    list = node;
    if (round % 3 == 0) { list = node->next; free(node); }
  }
  while (list) {
    struct node *next = list->next;
    sum += list->value + (int)strlen(list->name);
    free(list);
    list = next;
  }
  char local[32];
  memset(local, count, sizeof local);
  if (count == 2) pthread_exit((void *)(intptr_t)(sum + local[3]));
  return (void *)(intptr_t)(sum + local[3]);
}
static int deep(int depth, char *above) {
  char own[24];
  memset(own, depth, sizeof own);
  if (depth == 0) longjmp(place, 7);
  return deep(depth - 1, own) + above[1] + own[2];
}
static void handler(int signal) {
  char text[40];
  memset(text, signal, sizeof text);
  siglongjmp(far, text[5]);
}
static int sum(int count, ...) {
  va_list list;
  va_start(list, count);
  int all = 0;
  while (count--) all += va_arg(list, int);
  va_end(list);
  return all;
}
static int variable(int size) {
  char bytes[size];
  for (int at = 0; at < size; at++) bytes[at] = (char)at;
  int all = 0;
  for (int at = 0; at < size; at += 3) all += bytes[at];
  return all;
}
int main(void) {
  pthread_t threads[4];
  int counts[4];
  for (int at = 0; at < 4; at++) { counts[at] = at; pthread_create(&threads[at], 0, work, &counts[at]); }
  for (int at = 0; at < 4; at++) {
    void *result;
    pthread_join(threads[at], &result);
    printf("thread %d\n", (int)(intptr_t)result);
  }
  int numbers[50];
  for (int at = 0; at < 50; at++) numbers[at] = at * 37 % 50;
  qsort(numbers, 50, sizeof *numbers, order);
  for (int at = 0; at < 50; at++) assert(numbers[at] == at);
  for (int round = 0; round < 5; round++)
    if (!setjmp(place)) { char top[8] = {0}; deep(20 + round, top); }
  struct sigaction action = {.sa_handler = handler};
  sigaction(SIGUSR1, &action, 0);
  for (int round = 0; round < 5; round++)
    if (!sigsetjmp(far, 1)) { char text[64]; memset(text, 1, sizeof text); raise(SIGUSR1); puts("never"); }
  char *large = calloc(3 << 20, 1);
  large[(3 << 20) - 1] = 5;
  large = realloc(large, 4 << 20);
  printf("%d %d %d\n", large[(3 << 20) - 1], sum(4, 1, 2, 3, 4), variable(100));
  free(large);
  char *text = malloc(5);
  for (int size = 5; size < 3000; size = size * 3 / 2) {
    text = realloc(text, size);
    memset(text, 'x', size);
  }
  void *aligned;
  if (posix_memalign(&aligned, 4096, 100) || (uintptr_t)aligned % 4096) return 9;
  free(aligned);
  free(text);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) { char *block = malloc(100); strcpy(block, "child"); puts(block); free(block); exit(3); }
  int status;
  waitpid(child, &status, 0);
  printf("child %d\n", WEXITSTATUS(status));
  return 0;
}
