// Drives servers over TCP from a script and prints what they answer:
//
//   driver SCRIPT
//
// One command a line; `#` begins a comment. $PORT stands for a free port of 127.0.0.1, in the script and in the
// environment of the servers. TEXT knows \r \n \t \\ and \xHH; a WORD can be put in single quotes.
//
//   start WORD...    starts a server; what it prints goes to standard error
//   connect          opens a connection, trying until the server listens; later commands use it
//   use N            goes back to the Nth connection, counted from 0
//   send TEXT        sends it
//   symbolic N       sends N bytes that stand for all values; natively zeros, or those of a test
//   worlds N         goes on as N worlds; natively as one
//   line             prints one line that arrives
//   until TEXT       prints lines to the first one that begins with TEXT
//   bytes N          prints N bytes in hexadecimal
//   rest             prints everything to the end of the connection
//   whole            what arrives on this side comes whole, also where a run lets streams arrive in pieces
//   drop             reads to the end of the connection and prints nothing
//   shut             says that nothing more will be sent
//   close            closes the connection
//   hide TEXT        from now on, of lines that begin with TEXT nothing else is printed
//   skip TEXT        from now on, lines that begin with TEXT are not printed
//   run WORD...      runs a program to its end
//   sleep N          waits that many milliseconds
//   signal N         sends a signal to the server that was started last
//   wait             waits until that server ends, and says how
//   stop             SIGTERM, then wait

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <everett.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORDS = 64, MAX_CONNECTIONS = 64, MAX_SERVERS = 8, MAX_PREFIXES = 16, MAX_LINE = 65536 };

struct connection {
    int fd;
    size_t start, end;
    char data[MAX_LINE];
};

static struct connection *connections[MAX_CONNECTIONS];
static int connection_count, current = -1;
static pid_t servers[MAX_SERVERS];
static int server_count;
static struct { char text[64]; int skip; } prefixes[MAX_PREFIXES];
static int prefix_count;
static char port_text[16];
static int port, line_number;

static void kill_servers(void) {
    for (int i = 0; i < server_count; i++)
        if (servers[i] > 0)
            kill(servers[i], SIGKILL);
}

static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "driver: line %d: ", line_number);
    vfprintf(stderr, format, args);
    fprintf(stderr, ": %s\n", strerror(errno));
    va_end(args);
    fflush(stdout);
    kill_servers();
    _exit(99);
}

static void pause_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time) == -1 && errno == EINTR)
        ;
}

static int new_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        fail("socket");
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

static struct sockaddr_in loopback(int number) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(number)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void choose_port(void) {
    int fd = new_socket();
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    if (bind(fd, (struct sockaddr *)&address, length) || getsockname(fd, (struct sockaddr *)&address, &length))
        fail("no free port");
    port = ntohs(address.sin_port);
    close(fd);
    snprintf(port_text, sizeof port_text, "%d", port);
    setenv("PORT", port_text, 1);
}

// Puts the port where $PORT stands.
static void with_port(const char *from, char *to, size_t size) {
    size_t used = 0;
    while (*from && used + 8 < size) {
        if (strncmp(from, "$PORT", 5) == 0) {
            used += snprintf(to + used, size - used, "%s", port_text);
            from += 5;
        } else {
            to[used++] = *from++;
        }
    }
    to[used] = 0;
}

static char **split(char *text) {
    static char *words[MAX_WORDS + 1];
    int count = 0;
    while (*text && count < MAX_WORDS) {
        while (*text == ' ')
            text++;
        if (!*text)
            break;
        char end = *text == '\'' ? *text++ : ' ';
        words[count++] = text;
        while (*text && *text != end)
            text++;
        if (*text)
            *text++ = 0;
    }
    words[count] = NULL;
    if (count == 0)
        fail("no program named");
    return words;
}

static size_t unescape(char *text) {
    char *to = text;
    for (char *from = text; *from; from++) {
        if (*from != '\\' || !from[1]) {
            *to++ = *from;
            continue;
        }
        from++;
        if (*from == 'x' && from[1] && from[2]) {
            char digits[3] = {from[1], from[2], 0};
            *to++ = (char)strtol(digits, NULL, 16);
            from += 2;
        } else {
            *to++ = *from == 'r' ? '\r' : *from == 'n' ? '\n' : *from == 't' ? '\t' : *from;
        }
    }
    *to = 0;
    return to - text;
}

static pid_t start(char *text, int quiet) {
    char **words = split(text);
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        // A server must not outlive a driver that is killed.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (quiet)
            dup2(2, 1);
        execv(words[0], words);
        fprintf(stderr, "driver: cannot execute %s: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    return pid;
}

static void report(const char *what, pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) == -1)
        if (errno != EINTR)
            fail("wait");
    if (WIFSIGNALED(status))
        printf("%s: signal %d\n", what, WTERMSIG(status));
    else
        printf("%s: exit %d\n", what, WEXITSTATUS(status));
}

static void open_connection(void) {
    struct sockaddr_in address = loopback(port);
    if (connection_count == MAX_CONNECTIONS)
        fail("too many connections");
    int fd = -1;
    for (int attempt = 0;; attempt++) {
        fd = new_socket();
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            break;
        if (attempt == 500)
            fail("connect");
        close(fd);
        pause_ms(20);
    }
    struct connection *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        fail("memory");
    fresh->fd = fd;
    current = connection_count++;
    connections[current] = fresh;
}

static struct connection *active(void) {
    if (current < 0 || connections[current]->fd < 0)
        fail("no connection");
    return connections[current];
}

static void send_all(const char *data, size_t size) {
    struct connection *to = active();
    while (size > 0) {
        ssize_t sent = send(to->fd, data, size, MSG_NOSIGNAL);
        if (sent < 0)
            fail("send");
        data += sent;
        size -= sent;
    }
}

static void send_symbolic(size_t size) {
    char *data = malloc(size);
    if (!data)
        fail("malloc");
    everett_make_symbolic(data, size, "sent");
    send_all(data, size);
    free(data);
}

// One byte, or -1 at the end.
static int next_byte(struct connection *from) {
    if (from->start == from->end) {
        ssize_t count = recv(from->fd, from->data, sizeof from->data, 0);
        if (count < 0)
            fail("receive");
        from->start = 0;
        from->end = count;
        if (count == 0)
            return -1;
    }
    return (unsigned char)from->data[from->start++];
}

// Reads a line into `line` and prints what is to be seen of it. False at the end of the connection.
static int print_line(char *line) {
    struct connection *from = active();
    size_t length = 0;
    int byte = 0;
    while (byte != '\n' && length + 1 < MAX_LINE && (byte = next_byte(from)) >= 0)
        line[length++] = (char)byte;
    line[length] = 0;
    for (int i = 0; i < prefix_count; i++) {
        size_t prefix = strlen(prefixes[i].text);
        if (strncmp(line, prefixes[i].text, prefix) == 0) {
            if (!prefixes[i].skip)
                printf("%s ...\n", prefixes[i].text);
            return length > 0;
        }
    }
    fwrite(line, 1, length, stdout);
    if (length > 0 && byte < 0)
        printf("<end>\n");
    return length > 0;
}

static void print_bytes(int count) {
    for (int i = 0; i < count; i++) {
        int byte = next_byte(active());
        if (byte < 0) {
            printf("<end>");
            break;
        }
        printf("%02x%s", byte, i + 1 < count ? " " : "");
    }
    printf("\n");
}

static void add_prefix(char *text, int skip) {
    unescape(text);
    if (prefix_count == MAX_PREFIXES)
        fail("too many prefixes");
    snprintf(prefixes[prefix_count].text, sizeof prefixes[0].text, "%s", text);
    prefixes[prefix_count++].skip = skip;
}

static pid_t *last_server(void) {
    if (server_count == 0)
        fail("no server");
    return &servers[server_count - 1];
}

static void wait_for_server(void) {
    pid_t *server = last_server();
    report("server", *server);
    server_count--;
}

static void obey(const char *command, char *rest) {
    static char line[MAX_LINE];
    if (strcmp(command, "start") == 0) {
        if (server_count == MAX_SERVERS)
            fail("too many servers");
        servers[server_count] = start(rest, 1);
        server_count++;
    } else if (strcmp(command, "connect") == 0) {
        open_connection();
    } else if (strcmp(command, "use") == 0) {
        current = atoi(rest);
        if (current < 0 || current >= connection_count)
            fail("no such connection");
    } else if (strcmp(command, "send") == 0) {
        send_all(rest, unescape(rest));
    } else if (strcmp(command, "symbolic") == 0) {
        send_symbolic(atoi(rest));
    } else if (strcmp(command, "worlds") == 0) {
        everett_choose((unsigned)atoi(rest), "world");
    } else if (strcmp(command, "whole") == 0) {
        everett_fragment(active()->fd, 0);
    } else if (strcmp(command, "drop") == 0) {
        while (recv(active()->fd, active()->data, sizeof active()->data, 0) > 0)
            ;
    } else if (strcmp(command, "line") == 0) {
        print_line(line);
    } else if (strcmp(command, "until") == 0) {
        unescape(rest);
        while (print_line(line) && strncmp(line, rest, strlen(rest)) != 0)
            ;
    } else if (strcmp(command, "bytes") == 0) {
        print_bytes(atoi(rest));
    } else if (strcmp(command, "rest") == 0) {
        while (print_line(line))
            ;
    } else if (strcmp(command, "shut") == 0) {
        shutdown(active()->fd, SHUT_WR);
    } else if (strcmp(command, "close") == 0) {
        close(active()->fd);
        connections[current]->fd = -1;
    } else if (strcmp(command, "hide") == 0 || strcmp(command, "skip") == 0) {
        add_prefix(rest, command[0] == 's');
    } else if (strcmp(command, "run") == 0) {
        pid_t pid = start(rest, 0);
        report("run", pid);
    } else if (strcmp(command, "sleep") == 0) {
        pause_ms(atol(rest));
    } else if (strcmp(command, "signal") == 0) {
        kill(*last_server(), atoi(rest));
    } else if (strcmp(command, "wait") == 0) {
        wait_for_server();
    } else if (strcmp(command, "stop") == 0) {
        kill(*last_server(), SIGTERM);
        wait_for_server();
    } else {
        errno = EINVAL;
        fail("unknown command %s", command);
    }
}

int main(int argc, char **argv) {
    static char line[MAX_LINE], command[MAX_LINE];
    FILE *script = argc == 2 ? fopen(argv[1], "re") : NULL;
    if (!script) {
        fprintf(stderr, "usage: driver SCRIPT\n");
        return 98;
    }
    choose_port();
    while (fgets(line, sizeof line, script)) {
        line_number++;
        line[strcspn(line, "\n")] = 0;
        if (!line[0] || line[0] == '#')
            continue;
        with_port(line, command, sizeof command);
        char *rest = strchr(command, ' ');
        if (rest)
            *rest++ = 0;
        obey(command, rest ? rest : command + strlen(command));
        fflush(stdout);
    }
    fclose(script);
    kill_servers();
    return 0;
}
