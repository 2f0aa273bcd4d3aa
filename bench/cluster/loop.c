/* Computes without end in a window of time, and prints the seconds of CPU time that it got there:
 * loop BEGIN SECONDS, where BEGIN is the time since 1970 at which the window opens. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count != 3) return 2;
    double begin = atof(words[1]), end = begin + atof(words[2]), wait = begin - now(CLOCK_REALTIME);
    if (wait < 0) {
        fprintf(stderr, "loop: started %.3f s after the window opened\n", -wait);
        return 1;
    }
    struct timespec rest = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
    nanosleep(&rest, NULL);
    double used = now(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t state = 1;
    while (now(CLOCK_REALTIME) < end)
        for (int step = 0; step < 1000; step++) state = state * 6364136223846793005u + 1u;
    printf("%.6f %llu\n", now(CLOCK_PROCESS_CPUTIME_ID) - used, (unsigned long long)state);
    return 0;
}
