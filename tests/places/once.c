// LD_PRELOAD: the next write, sync or read of a medium fails once when the file $ONCE is there,
// which is removed then. $ONCE_CALL is write, sync or read, and $ONCE_ERRNO the error. Reaches
// calls of the C library, which --backend epoll makes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int fails(int fd, const char *call)
{
    static const char name[] = "/medium";
    const size_t length = sizeof name - 1;
    char link[64], path[4096];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t count = readlink(link, path, sizeof path);
    if (count < (ssize_t)length || memcmp(path + count - length, name, length) ||
        strcmp(getenv("ONCE_CALL"), call) || unlink(getenv("ONCE")))
        return 0;
    errno = atoi(getenv("ONCE_ERRNO"));
    return 1;
}

// Defines a call of the C library that may fail; the last argument is how it is passed on.
#define CALL(type, name, kind, parameters, arguments)                           \
    type name parameters                                                        \
    {                                                                           \
        static type (*next) parameters;                                         \
        if (!next) next = (type (*) parameters)dlsym(RTLD_NEXT, #name);         \
        return fails(fd, kind) ? -1 : next arguments;                           \
    }

CALL(ssize_t, pwrite64, "write", (int fd, const void *b, size_t n, off64_t at), (fd, b, n, at))
CALL(ssize_t, pwritev, "write", (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
CALL(ssize_t, pwritev64, "write", (int fd, const struct iovec *v, int n, off64_t at),
     (fd, v, n, at))
CALL(ssize_t, pread64, "read", (int fd, void *b, size_t n, off64_t at), (fd, b, n, at))
CALL(ssize_t, preadv, "read", (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
CALL(ssize_t, preadv64, "read", (int fd, const struct iovec *v, int n, off64_t at), (fd, v, n, at))
CALL(int, fdatasync, "sync", (int fd), (fd))
