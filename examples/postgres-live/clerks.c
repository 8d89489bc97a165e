// Two clerks withdraw 60 each from an account with 100, over connections of their own, in PostgreSQL's own protocol.
// As it stands, each looks how much there is, and then writes how much is left. With -DATOMIC, one statement does both.
#include <arpa/inet.h>
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { START = 100, AMOUNT = 60 };

// Gives up where the connection fails: that is no error of the bank.
static void leave(const char *why) {
  perror(why);
  _exit(3);
}

static void send_all(int db, const void *bytes, size_t size) {
  for (const char *at = bytes; size > 0;) {
    ssize_t sent = send(db, at, size, MSG_NOSIGNAL);
    if (sent <= 0) leave("send");
    at += sent;
    size -= (size_t)sent;
  }
}

static void receive_all(int db, void *bytes, size_t size) {
  for (char *at = bytes; size > 0;) {
    ssize_t got = recv(db, at, size, 0);
    if (got <= 0) leave("recv");
    at += got;
    size -= (size_t)got;
  }
}

static uint32_t number_at(const void *bytes) {
  uint32_t number;
  memcpy(&number, bytes, sizeof number);
  return ntohl(number);
}

// Reads messages until the server is ready. Returns the first column of a row as a number, or how many rows a command
// has changed.
static long answer(int db) {
  long result = -1;
  for (;;) {
    char head[5], body[2048] = {0};
    receive_all(db, head, sizeof head);
    uint32_t size = number_at(head + 1) - 4;
    if (size >= sizeof body) leave("a long message");
    receive_all(db, body, size);
    switch (head[0]) {
    case 'Z': return result;
    case 'E':
      fprintf(stderr, "the server says %s\n", body + 1);
      _exit(4);
    case 'D': result = atol(body + 6); break;
    case 'C':
      if (strncmp(body, "UPDATE ", 7) == 0) result = atol(body + 7);
    }
  }
}

static long query(int db, const char *text) {
  char message[256] = {'Q'};
  uint32_t size = htonl((uint32_t)(strlen(text) + 5));
  memcpy(message + 1, &size, sizeof size);
  strcpy(message + 5, text);
  send_all(db, message, strlen(text) + 6);
  return answer(db);
}

static int join_bank(void) {
  static const char start[] = "\0\0\0\0\0\3\0\0user\0clerk\0database\0postgres\0client_min_messages\0error\0";
  char message[sizeof start];
  memcpy(message, start, sizeof start);
  uint32_t size = htonl(sizeof start);
  memcpy(message, &size, sizeof size);
  struct sockaddr_in bank = {.sin_family = AF_INET, .sin_port = htons(5432)};
  inet_pton(AF_INET, "10.0.0.7", &bank.sin_addr);
  int db = socket(AF_INET, SOCK_STREAM, 0);
  if (db < 0 || connect(db, (struct sockaddr *)&bank, sizeof bank)) leave("connect");
  send_all(db, message, sizeof message);
  answer(db);
  return db;
}

static void *withdraw(void *own) {
  int db = *(int *)own;
#ifdef ATOMIC
  long changed = query(db, "UPDATE account SET money = money - 60 WHERE money >= 60");
  return (void *)(changed == 1 ? AMOUNT : 0l);
#else
  long money = query(db, "SELECT money FROM account");
  if (money < AMOUNT) return (void *)0l;
  char text[80];
  snprintf(text, sizeof text, "UPDATE account SET money = %ld", money - AMOUNT);
  query(db, text);
  return (void *)(long)AMOUNT;
#endif
}

int main(void) {
  int db[2] = {join_bank(), join_bank()};
  // A new table would have another number, which the server says with each answer.
  query(db[0], "CREATE TABLE IF NOT EXISTS account (money int); TRUNCATE account; INSERT INTO account VALUES (100)");
  pthread_t clerks[2];
  for (int at = 0; at < 2; at++)
    if (pthread_create(&clerks[at], 0, withdraw, &db[at])) leave("pthread_create");
  long paid = 0;
  for (int at = 0; at < 2; at++) {
    void *amount;
    pthread_join(clerks[at], &amount);
    paid += (long)amount;
  }
  long left = query(db[0], "SELECT money FROM account");
  printf("%ld paid, %ld left\n", paid, left);
  assert(paid + left == START);
  return 0;
}
