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

#include <stddef.h>
#include <stdint.h>

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

/* This path is a host of this name, and its set-up is over. Servers begin 10 ms after one another in the order of SEQUENCE,
 * time enough to come to where they wait; hosts that are none begin behind them, together. Returns when the host begins. */
int klee_net_host_setup(const char *hostname, int server, int sequence);

/* Shows SIZE bytes to invariants, as the value of KEY in the program's state STATE: everett_expose with a number. */
int klee_invariant_expose_data(int state, const char *key, const void *data, size_t size);

/* The files that this host has made or changed until now are written to the folder of the run, beside each finding and
 * test of a world in which this was called. */
int klee_net_write_filesystem(void);

#ifdef __cplusplus
}
#endif

#endif
