/* A model of PBFT with four replicas, in virtual time: correct clients, a malicious client whose authenticators are
   corrupted by a mask, and on request a malicious primary that works with it (AFEX, Fig. 3.9).

   Usage: pbft MASK CLIENTS client|primary [per-request]

   The malicious client sends one request to the primary and two to all replicas, and so on; each has one MAC for each
   replica. Bit 4 * REQUEST + REPLICA of the mask corrupts that MAC.

   - If the primary orders a request that no backup can verify, nothing behind it is executed before the view changes
     (the Big MAC attack).
   - The seeded bug: each replica has a single view-change timer. A request that it got from a client directly starts
     the timer, and the execution of any such request stops it, also if others still wait. So a malicious primary needs
     to execute only one request of a correct client whenever a timer is about to expire; and none at all, if the
     requests of its own client stop all timers often enough, which takes correct MACs.

   `per-request` mends it: timers only stop when nobody waits. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLICAS = 4, BITS = 12, END = 20000, TIMER = 250, EARLY = 20, PERIOD = 100, RETRANSMIT = 150, RATE = 4 };
enum { MOST_CLIENTS = 250 };

static int mask, clients, primary_is_malicious, timer_per_request;
static int view, now, stalled_until, is_stuck, requests;
static int timer[REPLICAS]; /* when it expires; 0 if it is stopped */
static int sent[MOST_CLIENTS];
static long executed, waited;

static int primary(void) { return view % REPLICAS; }

static int is_ignored(void) { return primary_is_malicious && primary() == 0; }

static int is_due(int margin) {
  for (int replica = 0; replica < REPLICAS; replica++)
    if (timer[replica] && now + margin >= timer[replica]) return 1;
  return 0;
}

static void change_view(void) {
  view++;
  is_stuck = 0;
  /* Replicas exchange what has been prepared, for each client. */
  stalled_until = now + 20 + clients / 2;
  memset(timer, 0, sizeof timer);
}

static void send_malicious(void) {
  int request = requests++ % 3, can_verify[REPLICAS], backups = 0;
  for (int replica = 0; replica < REPLICAS; replica++) {
    can_verify[replica] = !(mask >> (4 * request + replica) & 1);
    backups += replica != primary() && can_verify[replica];
  }
  /* Backups that get it directly wait for its execution. */
  for (int replica = 0; replica < REPLICAS; replica++)
    if (request && replica != primary() && can_verify[replica] && !timer[replica]) timer[replica] = now + TIMER;
  if (!can_verify[primary()] || now < stalled_until) return;
  is_stuck = !backups;
  for (int replica = 0; replica < REPLICAS && request && backups; replica++)
    if (can_verify[replica] && !timer_per_request) timer[replica] = 0;
}

static void execute(int client) {
  executed++;
  waited += now - sent[client];
  sent[client] = now + 1;
}

/* Correct clients send to the primary, and to all replicas if they get no answer. */
static void serve(void) {
  int most = RATE, oldest = 0, waiting = 0;
  for (int turn = 0; turn < clients; turn++) {
    int client = (now + turn) % clients, age = now - sent[client];
    if (age > 0 && age % RETRANSMIT == 0)
      for (int replica = 0; replica < REPLICAS; replica++)
        if (replica != primary() && !timer[replica]) timer[replica] = now + TIMER;
    if (sent[client] < sent[oldest]) oldest = client;
    if (age >= 3 && most && now >= stalled_until && !is_stuck && !is_ignored()) most--, execute(client);
    waiting |= now - sent[client] >= RETRANSMIT;
  }
  int is_spared = is_ignored() && !is_stuck && is_due(EARLY);
  if (is_spared) execute(oldest);
  if ((is_spared && !timer_per_request) || !waiting) memset(timer, 0, sizeof timer);
}

/* Returns the mean latency of correct clients in microseconds. */
static long run(void) {
  view = stalled_until = is_stuck = executed = waited = requests = 0;
  memset(timer, 0, sizeof timer);
  memset(sent, 0, sizeof sent);
  for (now = 1; now <= END; now++) {
    if (now % PERIOD == 0) send_malicious();
    if (is_due(0)) change_view();
    serve();
  }
  /* Those that still wait count, too. */
  for (int client = 0; client < clients; client++) waited += END - sent[client];
  return 1000 * waited / (executed + clients);
}

int main(int count, char **words) {
  if (count < 4) return 2;
  clients = atoi(words[2]);
  timer_per_request = count > 4;
  int given = atoi(words[1]);
  if (given < 0 || given >= 1 << BITS || clients < 1 || clients > MOST_CLIENTS) return 2;
  long usual = run(), usually_executed = executed;
  mask = given;
  primary_is_malicious = !strcmp(words[3], "primary");
  long latency = run();
  /* Both in percent of what these clients have without anything malicious. */
  printf("latency %ld\n", 100 * latency / usual);
  printf("throughput %ld\n", 100 * executed / usually_executed);
  printf("views %d\n", view);
  return 0;
}
