/* A model of PBFT in virtual time: correct clients, a malicious client whose authenticators are corrupted by a mask,
   and on request a malicious primary that works with it (AFEX, Fig. 3.9).

   Usage: pbft MASK CLIENTS client|primary [per-request]

   The malicious client sends a request to the primary, then the same to all replicas, as if there had been no answer,
   then the next one; after six of them it begins again. Bits 0 to 5 of the mask corrupt the MACs of its requests: the
   primary can verify them, the backups cannot. Bits 6 to 11 corrupt those of its retransmissions, which nobody can
   verify then.

   - If the primary orders a request that no backup can verify, nothing behind it is executed before the view changes
     (the Big MAC attack).
   - The seeded bug: backups have a single view-change timer. A request that they got from a client directly starts it,
     and the execution of any such request stops it, also if others still wait. So a malicious primary needs to execute
     only one request of a correct client whenever the timer is about to expire; and none at all, if the retransmissions
     of its own client stop the timer often enough, which takes correct MACs.

   `per-request` mends it: the timer only stops when nobody waits.

   Prints how long a round takes, in which each correct client does its own work and gets one answer, and the throughput
   of such rounds. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 12, REQUESTS = BITS / 2, MOST_CLIENTS = 250 };
/* Times in milliseconds, and requests that can be executed in one. */
enum { END = 20000, TIMER = 250, EARLY = 20, PERIOD = 100, RETRANSMIT = 50, WORK = 10000, RATE = 8 };

static int mask, clients, primary_is_malicious, timer_per_request;
static int view, now, stalled_until, is_stuck, messages, executed;
static int timer; /* when it expires; 0 if it is stopped */
static int sent[MOST_CLIENTS];

/* The primary of every fourth view is the malicious one. */
static int is_ignored(void) { return primary_is_malicious && view % 4 == 0; }

static int is_due(int margin) { return timer && now + margin >= timer; }

static void change_view(void) {
  view++;
  is_stuck = timer = 0;
  /* Replicas exchange what has been prepared, for each client. */
  stalled_until = now + 20 + clients / 2;
}

static void send_malicious(void) {
  int message = messages++ % (2 * REQUESTS), request = message / 2, is_again = message % 2;
  int is_corrupt = mask >> (is_again ? REQUESTS + request : request) & 1;
  if (now < stalled_until || (is_again && is_corrupt)) return;
  /* A malicious primary does not order what would end its view. */
  is_stuck = !is_again && is_corrupt && !is_ignored();
  if (is_again && !timer_per_request) timer = 0;
}

static void execute(int client) {
  executed++;
  sent[client] = now + 1;
}

/* Correct clients send to the primary, and to all replicas if they get no answer. */
static void serve(void) {
  int most = RATE, oldest = 0, is_waiting = 0;
  for (int turn = 0, client = now % clients; turn < clients; turn++) {
    int age = now - sent[client];
    if (age > 0 && age % RETRANSMIT == 0 && !timer) timer = now + TIMER;
    if (sent[client] < sent[oldest]) oldest = client;
    if (age >= 3 && most && now >= stalled_until && !is_stuck && !is_ignored()) most--, execute(client);
    is_waiting |= now - sent[client] >= RETRANSMIT;
    if (++client == clients) client = 0;
  }
  int is_spared = is_ignored() && !is_stuck && is_due(EARLY);
  if (is_spared) execute(oldest);
  if ((is_spared && !timer_per_request) || !is_waiting) timer = 0;
}

int main(int count, char **words) {
  if (count < 4) return 2;
  mask = atoi(words[1]);
  clients = atoi(words[2]);
  primary_is_malicious = !strcmp(words[3], "primary");
  timer_per_request = count > 4;
  if (mask < 0 || mask >= 1 << BITS || clients < 1 || clients > MOST_CLIENTS) return 2;
  for (now = 1; now <= END; now++) {
    if (now % PERIOD == 0) send_malicious();
    if (is_due(0)) change_view();
    serve();
  }
  double latency = WORK + (double)clients * END / (executed + 1);
  printf("latency %.3f\nthroughput %.3f\n", latency, 1000 * clients / latency);
  printf("served %d\nviews %d\n", executed, view);
  return 0;
}
