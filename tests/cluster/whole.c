/* One Fourier transform over all ranks of a job, by fftw3_mpi: mpicc whole.c -lfftw3_mpi -lfftw3 -lm
 *
 * whole N OUT: transforms the cube of NxNxN doubles whose values follow from their places, as
 * whole.py has them. Each rank has some planes; all exchange with all. Rank 0 writes the result,
 * N x N x (N/2+1) complex doubles, to OUT. */
#include <fftw3-mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void stop(const char *what) {
    fprintf(stderr, "whole: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static double value(long at) {
    /* Of a generator of numbers modulo 2^31 - 1; exact in both languages. */
    return (double)((at * 48271 + 11) % 2147483647 % 1000003) / 1000003;
}

/* Takes the planes of all ranks, in their order. */
static void write_all(const double *planes, long count, const char *path) {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank) {
        MPI_Send(&count, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
        MPI_Send(planes, (int)count, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        return;
    }
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(planes, sizeof *planes, count, file) != (size_t)count) stop(path);
    for (int other = 1; other < ranks; other++) {
        MPI_Recv(&count, 1, MPI_LONG, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double *theirs = malloc((count + 1) * sizeof *theirs);
        if (!theirs) stop("no memory");
        MPI_Recv(theirs, (int)count, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (fwrite(theirs, sizeof *theirs, count, file) != (size_t)count) stop(path);
        free(theirs);
    }
    if (fclose(file)) stop(path);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    fftw_mpi_init();
    long n = count == 3 ? atol(words[1]) : 0;
    if (n < 1 || n > 512) stop("usage: whole N OUT");
    ptrdiff_t planes, first, half = n / 2 + 1;
    ptrdiff_t room = fftw_mpi_local_size_3d(n, n, half, MPI_COMM_WORLD, &planes, &first);
    /* In place: a row of doubles has room for its half of the spectrum. */
    double *data = fftw_alloc_real(2 * room);
    if (!data) stop("no memory");
    fftw_plan plan = fftw_mpi_plan_dft_r2c_3d(n, n, n, data, (fftw_complex *)data, MPI_COMM_WORLD,
                                              FFTW_ESTIMATE);
    for (long x = 0; x < planes; x++)
        for (long y = 0; y < n; y++)
            for (long z = 0; z < n; z++)
                data[(x * n + y) * 2 * half + z] = value(((first + x) * n + y) * n + z);
    fftw_execute(plan);
    write_all(data, (long)(planes * n * 2 * half), words[2]);
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    printf("%s: %ld planes from %ld\n", host, (long)planes, (long)first);
    fftw_destroy_plan(plan);
    fftw_free(data);
    MPI_Finalize();
    return 0;
}
