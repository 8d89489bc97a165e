/* netklee.h: how one program boots a world of several hosts.
 *
 * The program branches on a symbolic machine number. Each path says which networks and routers there are, where it
 * is on them, and then that it is a host:
 *
 *   int main(void) {
 *     klee_net_add_network("net0");
 *     int machine = 0;
 *     klee_make_symbolic(&machine, sizeof(machine), "machine");
 *     if (machine == 1) {
 *       klee_net_add_interface(1, "net0", NULL);
 *       klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 0, 1), 0, 1, 1, NULL);
 *       klee_net_host_setup("server", 1, 1);
 *       return main_server();
 *     }
 *     klee_net_add_interface(1, "net0", NULL);
 *     klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 0, 2), 0, 1, 1, NULL);
 *     klee_net_host_setup("client", 0, 0);
 *     return main_client();
 *   }
 *
 * `everett run PROG` lets every path come to klee_net_host_setup. Then it writes a scenario with a host for each of them
 * (world.toml in the folder of the run) and explores its worlds: every host goes on where its path stands, under the
 * condition of that path. Each host has what was made symbolic on the way for itself.
 *
 * What several paths declare alike is one: the network "net0" above, and routers. All functions return 0, or an error as
 * a negative number (-EINVAL, -EEXIST, ...). After klee_net_host_setup nothing more can be declared (-EBUSY). Where the
 * program runs natively without Everett the functions do nothing and return 0. */

#ifndef NETKLEE_H
#define NETKLEE_H

#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <klee/klee.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An IPv4 address in the order of the network, as in_addr_t has it. */
static inline uint32_t klee_net_make_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return (uint32_t)a | (uint32_t)b << 8 | (uint32_t)c << 16 | (uint32_t)d << 24;
}

/* There is a network. Names consist of letters, digits, '.', '-' and '_', at most 63 of them (else -EINVAL). A path that has
 * declared it already gets -EEXIST. */
int klee_net_add_network(const char *name);

/* There is a router: it forwards between the networks that it has interfaces on; nothing runs on it. */
int klee_net_add_router(const char *name);

/* An interface on a network, of a router or, where ROUTER is NULL, of this host. -ENOENT: there is no such network or
 * router. -EEXIST: it has an interface of this number. */
int klee_net_add_interface(int interface, const char *network, const char *router);

/* An address of an interface. MASK is the length of the prefix of its subnet; 0 means 24 bits (IPv4) or 64 (IPv6). The
 * primary address of an interface is the one that packets leave from; the first is where none is said to be.
 * -ENODEV: there is no such interface. -EADDRINUSE: the address is there already. IPv6 addresses are texts, "fd00::1". */
int klee_net_add_ipv4_address(uint32_t address, unsigned mask, int interface, int primary,
                              const char *router);
int klee_net_add_ipv6_address(const char *address, unsigned mask, int interface, int primary,
                              const char *router);

/* Packets for these addresses go to a gateway. MASK is the length of the prefix; destination 0 (or NULL) with mask 0 is the
 * default route. -ENETUNREACH: the gateway is in no subnet of the interfaces. Without routes only the subnets of its own
 * interfaces can be reached. */
int klee_net_add_ipv4_route(uint32_t destination, unsigned mask, uint32_t gateway,
                            const char *router);
int klee_net_add_ipv6_route(const char *destination, unsigned mask, const char *gateway,
                            const char *router);

/* This path is a host of this name, and its set-up is over. Servers begin one after the other in the order of SEQUENCE,
 * each when those before it wait for others; hosts that are none begin together when all servers do. Returns when the host begins. */
int klee_net_host_setup(const char *hostname, int server, int sequence);

/* Shows SIZE bytes to invariants, as the value of KEY in the program's state STATE: everett_expose with a number. */
int klee_invariant_expose_data(int state, const char *key, const void *data, size_t size);

/* The files that this host has made or changed until now are written to the folder of the run, beside each finding and
 * test of a world in which this was called. */
int klee_net_write_filesystem(void);

/* Events: messages between hosts below the level of sockets, for network stacks of one's own. An event
 * travels as a UDP datagram to the port KLEE_NET_EVENT_PORT of its receiver, so faults of the network happen
 * to events, too; a program that uses that port itself defines another number before it includes this file. A
 * host has an inbox from its first call of one of these functions on; what arrives before is lost. They are
 * for one thread. */
#ifndef KLEE_NET_EVENT_PORT
#define KLEE_NET_EVENT_PORT 6067
#endif

/* The types of events, which masks combine. */
enum net_event_type {
  net_event_type_none = 0,
  net_event_type_data = 1 << 0,
  net_event_type_request = 1 << 1,
  net_event_type_reply = 1 << 2,
  net_event_type_close = 1 << 3
};

/* An event, or a mask of events: it matches those that have one of its types, and its other values where they
 * are not 0. */
struct net_event {
  uint16_t type;
  uint64_t identifier;
  uint32_t from_ip, to_ip;
  uint16_t from_port, to_port;
  uint32_t req_id;
  uint32_t con_id;
} __attribute__((__packed__));

/* An event in the inbox, and what was sent with it. */
struct klee_net_kept_event {
  struct klee_net_kept_event *next;
  uint32_t size;
  struct net_event event;
  uint8_t data[];
};

/* The inbox of this host: its socket + 1, and the events in the order of their arrival. */
struct klee_net_inbox_state {
  int opened;
  uint32_t sent;
  struct klee_net_kept_event *first;
};
__attribute__((weak)) struct klee_net_inbox_state klee_net_inbox;

static inline int klee_net_inbox_socket(void) {
  if (klee_net_inbox.opened) return klee_net_inbox.opened - 1;
  int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in own;
  memset(&own, 0, sizeof own);
  own.sin_family = AF_INET;
  own.sin_port = htons(KLEE_NET_EVENT_PORT);
  if (s < 0 || bind(s, (struct sockaddr *)&own, sizeof own)) return -1;
  klee_net_inbox.opened = s + 1;
  return s;
}

/* Takes what has arrived into the inbox. */
static inline void klee_net_inbox_fill(void) {
  int s = klee_net_inbox_socket();
  struct klee_net_kept_event **last = &klee_net_inbox.first;
  while (*last) last = &(*last)->next;
  for (;;) {
    struct net_event event;
    ssize_t length = recv(s, &event, sizeof event, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);
    if (length < 0) return;
    size_t header = sizeof event, got = (size_t)length;
    struct klee_net_kept_event *kept = NULL;
    if (got >= header) kept = (struct klee_net_kept_event *)malloc(sizeof *kept + got - header);
    if (!kept) {
      recv(s, &event, sizeof event, MSG_DONTWAIT);
      continue;
    }
    struct iovec parts[2] = {{&kept->event, header}, {kept->data, got - header}};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    recvmsg(s, &message, MSG_DONTWAIT);
    kept->size = (uint32_t)(got - header);
    kept->next = NULL;
    *last = kept;
    last = &kept->next;
  }
}

static inline int klee_net_matches(const struct net_event *event, const struct net_event *masks,
                                   uint32_t count) {
  for (uint32_t at = 0; at < count; at++) {
    const struct net_event *mask = &masks[at];
    if ((event->type & mask->type) == 0) continue;
    if (mask->identifier && mask->identifier != event->identifier) continue;
    if (mask->from_ip && mask->from_ip != event->from_ip) continue;
    if (mask->to_ip && mask->to_ip != event->to_ip) continue;
    if (mask->from_port && mask->from_port != event->from_port) continue;
    if (mask->to_port && mask->to_port != event->to_port) continue;
    if (mask->req_id && mask->req_id != event->req_id) continue;
    if (mask->con_id && mask->con_id != event->con_id) continue;
    return 1;
  }
  return 0;
}

/* How many events in the inbox match a mask, without waiting; 0 if they are fewer than MINIMUM. */
static inline int klee_net_has_pending_events(const struct net_event *masks, uint32_t count,
                                              uint32_t minimum) {
  uint32_t found = 0;
  klee_net_inbox_fill();
  for (struct klee_net_kept_event *kept = klee_net_inbox.first; kept; kept = kept->next)
    found += klee_net_matches(&kept->event, masks, count);
  return found < minimum ? 0 : (int)found;
}

/* Waits until MINIMUM events match a mask, or the time is over; two times 0 wait for ever. Returns how many match. */
static inline int klee_net_will_get_events(const struct net_event *masks, uint32_t count,
                                           uint32_t minimum, uint32_t seconds,
                                           uint32_t microseconds) {
  int64_t most = (int64_t)seconds * 1000 + (microseconds + 999) / 1000;
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (;;) {
    int found = klee_net_has_pending_events(masks, count, minimum), left = -1;
    if (found > 0 || minimum == 0) return found;
    if (most) {
      clock_gettime(CLOCK_MONOTONIC, &now);
      int64_t passed = (int64_t)(now.tv_sec - start.tv_sec) * 1000;
      passed += (now.tv_nsec - start.tv_nsec) / 1000000;
      if (passed >= most) return klee_net_has_pending_events(masks, count, 0);
      left = (int)(most - passed);
    }
    struct pollfd waits = {klee_net_inbox_socket(), POLLIN, 0};
    if (poll(&waits, 1, left) < 0) return klee_net_has_pending_events(masks, count, 0);
  }
}

/* Copies the first MOST events that match a mask; they stay in the inbox. Returns how many. */
static inline int klee_net_events_get(struct net_event *events, uint32_t most,
                                      const struct net_event *masks, uint32_t count) {
  uint32_t found = 0;
  klee_net_inbox_fill();
  for (struct klee_net_kept_event *kept = klee_net_inbox.first; kept; kept = kept->next)
    if (found < most && klee_net_matches(&kept->event, masks, count)) events[found++] = kept->event;
  return (int)found;
}

/* Sends an event to the host TO_IP, with the object of malloc that DATA points to, if it is not NULL: all of
 * it. An event without an identifier gets one that no other has. */
static inline int klee_net_event_put(struct net_event *event, const uint8_t *data) {
  int s = klee_net_inbox_socket();
  unsigned known = net_event_type_data | net_event_type_request | net_event_type_reply |
                   net_event_type_close;
  if (event->type == 0 || event->type & ~known) return -EINVAL;
  if (!event->identifier) event->identifier = (uint64_t)event->from_ip << 32 | ++klee_net_inbox.sent;
  struct sockaddr_in to;
  memset(&to, 0, sizeof to);
  to.sin_family = AF_INET;
  to.sin_port = htons(KLEE_NET_EVENT_PORT);
  to.sin_addr.s_addr = event->to_ip;
  struct iovec parts[2] = {{event, sizeof *event},
                           {(void *)data, data ? malloc_usable_size((void *)data) : 0}};
  struct msghdr message;
  memset(&message, 0, sizeof message);
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return sendmsg(s, &message, 0) < 0 ? -errno : 0;
}

static inline struct klee_net_kept_event **klee_net_event_place(uint64_t identifier) {
  struct klee_net_kept_event **place = &klee_net_inbox.first;
  while (*place && (*place)->event.identifier != identifier) place = &(*place)->next;
  return place;
}

/* Removes an event from the inbox; of several of its identifier, the first. -ENOENT: there is none. */
static inline int klee_net_event_remove(uint64_t identifier) {
  struct klee_net_kept_event **place = klee_net_event_place(identifier), *kept = *place;
  if (!kept) return -ENOENT;
  *place = kept->next;
  free(kept);
  return 0;
}

/* A copy of what was sent with an event in the inbox, and its size; NULL if there is nothing. */
static inline uint8_t *klee_net_event_data_alloc(uint64_t identifier, uint32_t *size) {
  struct klee_net_kept_event *kept = *klee_net_event_place(identifier);
  uint8_t *data = kept && kept->size ? (uint8_t *)malloc(kept->size) : NULL;
  if (data) memcpy(data, kept->data, kept->size);
  if (size) *size = data ? kept->size : 0;
  return data;
}

static inline void klee_net_event_data_free(uint8_t *data) { free(data); }

#ifdef __cplusplus
}
#endif

#endif
