/* A customer of the shop: buys twice, any number of things each time, and adds up what it got. It forgets that a shop
 * can say no. */
#include <arpa/inet.h>
#include <everett.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int ask(int fd, const char *line, char *answer, size_t size) {
    if (write(fd, line, strlen(line)) != (ssize_t)strlen(line))
        return -1;
    size_t got = 0;
    while (got + 1 < size && !memchr(answer, '\n', got)) {
        ssize_t count = read(fd, answer + got, size - 1 - got);
        if (count <= 0)
            return -1;
        got += (size_t)count;
    }
    answer[got] = 0;
    return 0;
}

int main(void) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *shop;
    if (getaddrinfo("shop.example", "7000", &hints, &shop) != 0)
        return 2;
    int fd = socket(shop->ai_family, shop->ai_socktype, 0);
    if (fd < 0 || connect(fd, shop->ai_addr, shop->ai_addrlen) != 0)
        return 2;
    int bought = 0;
    for (int i = 0; i < 2; i++) {
        char line[32], answer[64];
        snprintf(line, sizeof line, "buy %d\n", 1 + (int)everett_choose(3, "count"));
        if (ask(fd, line, answer, sizeof answer) != 0)
            return 3;
        int count = 0, left = -1;
        sscanf(answer, "sold %d, %d left", &count, &left);
        bought += count;
        everett_assert(left >= 0);
    }
    close(fd);
    printf("bought %d\n", bought);
    return 0;
}
