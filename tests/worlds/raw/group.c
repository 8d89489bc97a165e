/* A message to a group reaches the hosts that have joined it, and the sender itself unless it says otherwise.
 *
 *     group send | quiet | join | stay */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1, off = 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(5000)};
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(5000), .sin_addr = {inet_addr("239.9.9.9")}};
    struct ip_mreq join = {.imr_multiaddr = group.sin_addr};
    if (argc != 2 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
        return 100;
    int stays = strcmp(argv[1], "stay") == 0, is_quiet = strcmp(argv[1], "quiet") == 0;
    if (!stays && setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) != 0)
        return 101;
    if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, is_quiet ? &off : &on, sizeof on) != 0)
        return 102;
    usleep(100000);
    if ((is_quiet || argv[1][0] == 's') && !stays &&
        sendto(fd, "hi", 2, 0, (struct sockaddr *)&group, sizeof group) != 2)
        return 103;
    int count = 0;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    while (poll(&entry, 1, 500) > 0) {
        char text[8];
        if (recv(fd, text, sizeof text, 0) != 2)
            return 104;
        count++;
    }
    return count;
}
