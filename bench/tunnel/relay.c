// The floor of the tunnel, and two programs that measure round trips: bench/tunnel/pairs.py.
//
//   relay end NETNS DEVICE PORT     packets between a new TUN device and a TCP connection
//   relay middle PORT               bytes between two TCP connections, as the drive stands there
//   relay echo ADDRESS PORT         sends every byte back
//   relay ping ADDRESS PORT COUNT   round trips of one byte: prints their p50 and p99 in us
//
// Packets have the frames of the tunnel (docs/internals/contracts.md): length, virtio-net header,
// packet, padding. Each direction has a thread, so that none waits for the other.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// Length field, virtio-net header, longest packet.
enum { LENGTH = 4, HEADER = 10, PACKET = 65535, FRAME = 65552, BATCH = 256 << 10 };

struct pair {
    int from, to;
};

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int is_error(const char *what, int value) {
    if (value < 0) die(what);
    return value;
}

static struct sockaddr_in address_of(const char *address, const char *port) {
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    inet_pton(AF_INET, address, &found.sin_addr);
    return found;
}

static void no_delay(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static int dial(const char *address, const char *port) {
    struct sockaddr_in to = address_of(address, port);
    int fd = is_error("socket", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    is_error("connect", connect(fd, (struct sockaddr *)&to, sizeof to));
    no_delay(fd);
    return fd;
}

static int listening(const char *address, const char *port) {
    struct sockaddr_in at = address_of(address, port);
    int fd = is_error("socket", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    is_error("bind", bind(fd, (struct sockaddr *)&at, sizeof at));
    is_error("listen", listen(fd, 8));
    puts("ready");
    fflush(stdout);
    return fd;
}

static int accepted(int listener) {
    int fd = is_error("accept", accept(listener, NULL, NULL));
    no_delay(fd);
    return fd;
}

static void write_all(int fd, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = write(fd, bytes, count);
        if (written <= 0) exit(0);
        bytes += written;
        count -= written;
    }
}

static int device(const char *netns, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", netns);
    int namespace = is_error(path, open(path, O_RDONLY | O_CLOEXEC));
    is_error("setns", setns(namespace, CLONE_NEWNET));
    int fd = is_error("/dev/net/tun", open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    is_error("TUNSETIFF", ioctl(fd, TUNSETIFF, &request));
    is_error("TUNSETOFFLOAD", ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6));
    return fd;
}

// From the device to the connection: all packets that are there with one write.
static void *outgoing(void *argument) {
    struct pair *pair = argument;
    static char batch[BATCH];
    for (;;) {
        size_t used = 0;
        while (used + FRAME <= BATCH) {
            ssize_t count = read(pair->from, batch + used + LENGTH, HEADER + PACKET);
            if (count > 0) {
                uint32_t length = count;
                memcpy(batch + used, &length, LENGTH);
                size_t end = used + LENGTH + length;
                used = (end + 3) / 4 * 4;
                memset(batch + end, 0, used - end);
            } else if (count < 0 && errno == EAGAIN && used == 0) {
                struct pollfd readable = {.fd = pair->from, .events = POLLIN};
                poll(&readable, 1, -1);
            } else if (count < 0 && errno == EAGAIN) {
                break;
            } else {
                exit(0);
            }
        }
        write_all(pair->to, batch, used);
    }
}

// From the connection to the device.
static void *incoming(void *argument) {
    struct pair *pair = argument;
    static char bytes[BATCH + FRAME];
    size_t held = 0;
    for (;;) {
        ssize_t count = read(pair->from, bytes + held, BATCH);
        if (count <= 0) exit(0);
        held += count;
        size_t at = 0;
        uint32_t length;
        while (held - at >= LENGTH && (memcpy(&length, bytes + at, LENGTH), 1)) {
            size_t whole = (LENGTH + length + 3) / 4 * 4;
            if (held - at < whole) break;
            if (write(pair->to, bytes + at + LENGTH, length) < 0 && errno == EBADFD) exit(0);
            at += whole;
        }
        memmove(bytes, bytes + at, held - at);
        held -= at;
    }
}

static void *forward(void *argument) {
    struct pair *pair = argument;
    char *bytes = malloc(BATCH);
    for (;;) {
        ssize_t count = read(pair->from, bytes, BATCH);
        if (count <= 0) exit(0);
        write_all(pair->to, bytes, count);
    }
}

static void both(void *(*one)(void *), struct pair first, void *(*other)(void *),
                 struct pair second) {
    pthread_t thread;
    pthread_create(&thread, NULL, one, &first);
    other(&second);
}

static void echo(int listener) {
    for (;;) {
        int fd = accepted(listener);
        char byte;
        while (read(fd, &byte, 1) == 1) write_all(fd, &byte, 1);
        close(fd);
    }
}

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void ping(int fd, int count) {
    enum { WARM = 200 };
    double *all = calloc(count, sizeof *all);
    for (int number = -WARM; number < count; number++) {
        struct timespec begin, end;
        char byte = 1;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        write_all(fd, &byte, 1);
        if (read(fd, &byte, 1) != 1) die("read");
        clock_gettime(CLOCK_MONOTONIC, &end);
        double us = (end.tv_sec - begin.tv_sec) * 1e6 + (end.tv_nsec - begin.tv_nsec) / 1e3;
        if (number >= 0) all[number] = us;
    }
    qsort(all, count, sizeof *all, by_size);
    printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}\n", all[count / 2], all[count * 99 / 100]);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "end") && count == 5) {
        int connection = dial("127.0.0.1", words[4]), tun = device(words[2], words[3]);
        puts("ready");
        fflush(stdout);
        both(outgoing, (struct pair){tun, connection}, incoming, (struct pair){connection, tun});
    } else if (!strcmp(what, "middle") && count == 3) {
        int listener = listening("127.0.0.1", words[2]);
        int one = accepted(listener), other = accepted(listener);
        both(forward, (struct pair){one, other}, forward, (struct pair){other, one});
    } else if (!strcmp(what, "echo") && count == 4) {
        echo(listening(words[2], words[3]));
    } else if (!strcmp(what, "ping") && count == 5) {
        ping(dial(words[2], words[3]), atoi(words[4]));
    } else {
        fprintf(stderr, "usage: relay end|middle|echo|ping ..., see bench/tunnel/relay.c\n");
        return 2;
    }
    return 0;
}
