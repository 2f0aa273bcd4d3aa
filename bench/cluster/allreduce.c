/* Sums of vectors over all ranks of a job, timed: mpicc allreduce.c
 *
 * allreduce BYTES COUNT: rank 0 prints the median of COUNT times, in seconds, after a few that do
 * not count. Every sum is compared with what the numbers of the ranks give. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM = 3 };

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **words) {
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long numbers = count == 3 ? atol(words[1]) / (long)sizeof(long) : 0;
    int times = count == 3 ? atoi(words[2]) : 0;
    if (numbers < 1 || times < 1) MPI_Abort(MPI_COMM_WORLD, 2);
    long *own = malloc(numbers * sizeof *own), *sums = malloc(numbers * sizeof *sums);
    double *took = malloc(times * sizeof *took);
    if (!own || !sums || !took) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int round = -WARM; round < times; round++) {
        for (long at = 0; at < numbers; at++) own[at] = (round + at) * (rank + 1);
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime();
        MPI_Allreduce(own, sums, (int)numbers, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        if (round >= 0) took[round] = MPI_Wtime() - begun;
        for (long at = 0; at < numbers; at++)
            if (sums[at] != (round + at) * ranks * (ranks + 1) / 2) {
                fprintf(stderr, "rank %d, round %d: sum %ld is wrong\n", rank, round, sums[at]);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    }
    qsort(took, times, sizeof *took, by_size);
    if (rank == 0) printf("%d ranks, median of %d: %.6f s\n", ranks, times, took[times / 2]);
    MPI_Finalize();
    return 0;
}
