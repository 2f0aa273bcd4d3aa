/* The floor of bench/rebuild/pairs.py: n processes read a file each and send it over loopback TCP;
 * one process receives all, writes what the first sends, and syncs the given number of times.
 *
 *     floor OUT BYTES DIRECT SYNCS SOURCE...
 *
 * Moves BYTES of each file, a whole number of MiB, past the page cache if DIRECT is 1. Every stream
 * has a thread that receives it, and the file one that writes and syncs, so that nothing waits for
 * a sync but the last one. Prints the seconds from the first read to the last sync. Computes and
 * compares nothing. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 20, AHEAD = 16, SOURCES_MAX = 32 };

static long pieces, syncs;
static int out;
static char *ring[AHEAD];
static long received, written;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static void check(int is_right, const char *what)
{
    if (!is_right) {
        perror(what);
        exit(1);
    }
}

static char *room(void)
{
    void *room;
    check(posix_memalign(&room, 4096, PIECE) == 0, "memory");
    return room;
}

/* Reads a file and sends it. */
static void send_file(const char *path, int is_direct, struct sockaddr_in to)
{
    int file = open(path, O_RDONLY | (is_direct ? O_DIRECT : 0));
    int stream = socket(AF_INET, SOCK_STREAM, 0);
    char *bytes = room(), go;
    check(file >= 0, path);
    check(connect(stream, (struct sockaddr *)&to, sizeof to) == 0, "connect");
    check(read(stream, &go, 1) == 1, "go");
    for (long at = 0; at < pieces; at++) {
        check(pread(file, bytes, PIECE, at * PIECE) == PIECE, "read");
        for (long sent = 0, some; sent < PIECE; sent += some)
            check((some = write(stream, bytes + sent, PIECE - sent)) > 0, "send");
    }
    exit(0);
}

static void receive(int stream, char *bytes)
{
    check(recv(stream, bytes, PIECE, MSG_WAITALL) == PIECE, "receive");
}

/* Receives a stream whose bytes go nowhere. */
static void *drop(void *stream)
{
    char *bytes = room();
    for (long at = 0; at < pieces; at++)
        receive((int)(long)stream, bytes);
    return NULL;
}

/* Receives the stream that is written. */
static void *keep(void *stream)
{
    for (long at = 0; at < pieces; at++) {
        pthread_mutex_lock(&lock);
        while (at - written >= AHEAD)
            pthread_cond_wait(&moved, &lock);
        pthread_mutex_unlock(&lock);
        receive((int)(long)stream, ring[at % AHEAD]);
        pthread_mutex_lock(&lock);
        received = at + 1;
        pthread_cond_broadcast(&moved);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Writes the ring to the file, with evenly spaced syncs. */
static void write_all(void)
{
    for (long at = 0; at < pieces; at++) {
        pthread_mutex_lock(&lock);
        while (received <= at)
            pthread_cond_wait(&moved, &lock);
        pthread_mutex_unlock(&lock);
        check(pwrite(out, ring[at % AHEAD], PIECE, at * PIECE) == PIECE, "write");
        pthread_mutex_lock(&lock);
        written = at + 1;
        pthread_cond_broadcast(&moved);
        pthread_mutex_unlock(&lock);
        for (long due = at * syncs / pieces; due < (at + 1) * syncs / pieces; due++)
            check(fdatasync(out) == 0, "sync");
    }
}

int main(int count, char **words)
{
    int sources = count - 5, streams[SOURCES_MAX], is_direct;
    pthread_t threads[SOURCES_MAX];
    struct timespec begun, ended;
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t length = sizeof at;
    if (sources < 1 || sources > SOURCES_MAX)
        return fprintf(stderr, "usage: floor OUT BYTES DIRECT SYNCS SOURCE...\n"), 2;
    pieces = atol(words[2]) / PIECE, is_direct = atoi(words[3]), syncs = atol(words[4]);
    out = open(words[1], O_WRONLY | O_CREAT | (is_direct ? O_DIRECT : 0), 0600);
    check(out >= 0 && posix_fallocate(out, 0, pieces * PIECE) == 0 && fsync(out) == 0, words[1]);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check(bind(listener, (struct sockaddr *)&at, sizeof at) == 0, "bind");
    check(listen(listener, SOURCES_MAX) == 0, "listen");
    check(getsockname(listener, (struct sockaddr *)&at, &length) == 0, "name");
    for (int source = 0; source < sources; source++) {
        if (fork() == 0)
            send_file(words[5 + source], is_direct, at);
        check((streams[source] = accept(listener, NULL, NULL)) >= 0, "accept");
    }
    for (int slot = 0; slot < AHEAD; slot++)
        memset(ring[slot] = room(), 0, PIECE);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int source = 0; source < sources; source++) {
        check(write(streams[source], "g", 1) == 1, "go");
        check(pthread_create(&threads[source], NULL, source ? drop : keep,
                             (void *)(long)streams[source]) == 0, "thread");
    }
    write_all();
    for (int source = 0; source < sources; source++)
        pthread_join(threads[source], NULL);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double seconds = ended.tv_sec - begun.tv_sec + (ended.tv_nsec - begun.tv_nsec) / 1e9;
    printf("{\"seconds\": %.6f}\n", seconds);
    while (wait(NULL) > 0)
        ;
    return 0;
}
