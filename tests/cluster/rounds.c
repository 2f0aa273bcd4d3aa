/* Adds numbers over all ranks, round after round, until a file is there: mpicc rounds.c
 *
 * rounds STOP BEGUN: rank 0 makes BEGUN after each ten rounds, and all end in the round in which it
 * finds STOP. Each sum of 1 MiB is compared with what the numbers of the ranks give. Ends with 1 if one
 * is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NUMBERS = 1 << 17, TEN = 10 };
static long own[NUMBERS], sums[NUMBERS];

int main(int count, char **words) {
    int rank, ranks, stop = 0;
    long rounds = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    while (!stop) {
        for (long at = 0; at < NUMBERS; at++) own[at] = (rounds + at) * (rank + 1);
        MPI_Allreduce(own, sums, NUMBERS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        for (long at = 0; at < NUMBERS; at++)
            if (sums[at] != (rounds + at) * ranks * (ranks + 1) / 2) {
                fprintf(stderr, "rank %d, round %ld: sum %ld is wrong\n", rank, rounds, sums[at]);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        rounds++;
        if (rank == 0) {
            FILE *begun = rounds % TEN == 0 ? fopen(words[2], "w") : NULL;
            if (begun) fclose(begun);
            stop = access(words[1], F_OK) == 0;
        }
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%ld rounds of %d ranks, every sum right\n", rounds, ranks);
    MPI_Finalize();
    return 0;
}
