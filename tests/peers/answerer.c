// Answers datagrams until one says that it was the last; prints how many came, and from how many senders.
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(void)
{
	int sock = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(53)};
	if (bind(sock, (void *)&own, sizeof own))
		return 2;
	int count = 0, senders = 0;
	unsigned short seen[8] = {0};
	for (;;) {
		char text[64], answer[80];
		struct sockaddr_in from;
		socklen_t size = sizeof from;
		ssize_t len = recvfrom(sock, text, sizeof text, 0, (void *)&from, &size);
		if (len < 0)
			return 3;
		if (len == 3 && !memcmp(text, "bye", 3))
			break;
		count++;
		int at = 0;
		while (at < senders && seen[at] != from.sin_port)
			at++;
		if (at == senders)
			seen[senders++] = from.sin_port;
		int made = snprintf(answer, sizeof answer, "got %.*s", (int)len, text);
		sendto(sock, answer, made, 0, (void *)&from, size);
	}
	printf("%d datagrams from %d senders\n", count, senders);
	return count == 3 ? 0 : 1;
}
