/* Requests of clients to the replicas of a service that tolerates Byzantine faults, after PBFT. */
#include <stdint.h>
#include <string.h>

enum { PORT = 3669, REPLICAS = 4, CLIENTS = 3, MOST_COMMAND = 8 };
enum { REQUEST = 1, PRE_PREPARE = 2, STARTED = 3, READ_ONLY = 1 };

struct request {
  uint16_t tag;
  uint16_t extra; /* flags */
  uint32_t size;
  uint64_t digest[2];
  uint16_t replier; /* the replica that sends the whole result */
  uint16_t command_size;
  uint16_t cid; /* the client */
  uint16_t rid; /* its request */
  uint8_t command[MOST_COMMAND];
  uint32_t authenticators[REPLICAS]; /* one for each replica, which all replicas can check */
};

/* Stand for a hash and for signatures of it. */
__attribute__((noinline)) static uint64_t digest_of(const struct request *request, int half) {
  uint64_t hash = 0xcbf29ce484222325u + (unsigned)half;
  const uint16_t head[] = {request->extra, request->command_size, request->cid, request->rid};
  for (unsigned i = 0; i < 4; i++) hash = (hash ^ head[i]) * 0x100000001b3u;
  for (unsigned i = 0; i < MOST_COMMAND; i++) hash = (hash ^ request->command[i]) * 0x100000001b3u;
  return hash;
}

__attribute__((noinline)) static uint32_t authenticator_of(const struct request *request, unsigned replica) {
  uint64_t key = 0x9e3779b97f4a7c15u * (request->cid * REPLICAS + replica + 1);
  return (uint32_t)((request->digest[0] ^ key) * 0x100000001b3u >> 32) ^ (uint32_t)request->digest[1];
}
