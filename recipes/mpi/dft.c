/* Fourier transforms of the objects in a folder, by all ranks of a job: mpicc dft.c -lfftw3 -lm
 *
 * An object is a file of doubles whose name tells its shape: 1d-* has 180, 2d-* 50x50, 3d-*
 * 50x50x50. Its transform is next to it, NAME.dft: half of the spectrum, as numpy.fft.rfftn has it.
 * An object is done if its transform has its whole length, so a second job does what is left.
 *
 * Rank 0 has the queue of all objects. Ranks of its machine take any object, all others those of
 * their own machine. The first rank of each machine, its keeper, reads and writes its objects for
 * ranks of others. A rank asks for another object as it begins one, and answers messages before it
 * does so. While nothing comes it sleeps, because a drive's quota of CPU time is short.
 * With $CSD_JOURNAL rank 0 writes there a line `todo MACHINE/NAME` for each object, and `done
 * MACHINE/NAME` as each is done. */
#include <dirent.h>
#include <fftw3.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAME = 64, MACHINES = 1024, DOUBLES = 50 * 50 * 50, RESULTS = 50 * 50 * 26 * 2 };
/* Objects that a rank has asked for or has and has not begun; shortest and longest sleep. */
enum { AHEAD = 8, SLEEP_MIN_NS = 20000, SLEEP_MAX_NS = 1000000 };
enum tag { ASK, GIVE, DONE, FETCH, DATA, STORE, STORED, END };

struct object { int machine; char name[NAME]; };
/* A result on its way to its keeper. */
struct result { char name[NAME]; double values[RESULTS]; };
struct shape { int dimensions, sizes[3], doubles, results; fftw_plan plan; };

static struct shape shapes[3] = {
    {1, {180}, 180, 91 * 2, NULL},
    {2, {50, 50}, 2500, 50 * 26 * 2, NULL},
    {3, {50, 50, 50}, DOUBLES, RESULTS, NULL},
};
static const char *folder;
static int rank, ranks, machine, keepers[MACHINES], machine_of[4096];
static double *input;
static struct result result;

static void stop(const char *what, const char *name) {
    char host[NAME] = "";
    gethostname(host, sizeof host - 1);
    fprintf(stderr, "dft: %s: %s: %s/%s\n", host, what, folder, name);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static struct shape *shape_of(const char *name) {
    int is_object = name[0] >= '1' && name[0] <= '3' && name[1] == 'd' && name[2] == '-';
    size_t length = strlen(name);
    if (!is_object || length >= NAME || (length > 4 && !strcmp(name + length - 4, ".dft"))
        || strstr(name, ".new")) return NULL;
    return &shapes[name[0] - '1'];
}

static void path_of(char *path, size_t size, const char *name, const char *more) {
    if (snprintf(path, size, "%s/%s%s", folder, name, more) >= (int)size) stop("path too long", name);
}

static long length_of(const char *name, const char *more) {
    char path[4096];
    struct stat found;
    path_of(path, sizeof path, name, more);
    return stat(path, &found) ? -1 : (long)found.st_size;
}

static void read_object(const char *name, double *values) {
    char path[4096];
    path_of(path, sizeof path, name, "");
    FILE *file = fopen(path, "rb");
    size_t doubles = (size_t)shape_of(name)->doubles;
    if (!file || fread(values, sizeof *values, doubles, file) != doubles) stop("cannot be read", name);
    fclose(file);
}

static void write_result(const char *name, const double *values) {
    char path[4096], new[4096];
    path_of(path, sizeof path, name, ".dft");
    path_of(new, sizeof new, name, ".new");
    FILE *file = fopen(new, "wb");
    size_t doubles = (size_t)shape_of(name)->results;
    if (!file || fwrite(values, sizeof *values, doubles, file) != doubles || fclose(file)
        || rename(new, path)) stop("cannot be written", name);
}

static void transform(const char *name) {
    struct shape *shape = shape_of(name);
    fftw_complex *out = (fftw_complex *)result.values;
    if (!shape->plan)
        shape->plan = fftw_plan_dft_r2c(shape->dimensions, shape->sizes, input, out,
                                        FFTW_ESTIMATE | FFTW_UNALIGNED | FFTW_PRESERVE_INPUT);
    fftw_execute(shape->plan);
    strcpy(result.name, name);
}

/* ---- the queue, of rank 0 alone ---- */

static struct object *queue;
static int queued, *next_of, *end_of, machines, left;
static FILE *journal;

static void note(const char *what, const struct object *object, char (*names)[NAME]) {
    if (!journal) return;
    fprintf(journal, "%s %s/%s\n", what, names[object->machine], object->name);
    fflush(journal);
}

/* Returns the next object for a rank, or NULL. */
static struct object *take(int who) {
    int from = machine_of[who];
    if (next_of[from] == end_of[from] && from == machine_of[0])
        /* Of the machine that has the most left. */
        for (int other = 0; other < machines; other++)
            if (end_of[other] - next_of[other] > end_of[from] - next_of[from]) from = other;
    return next_of[from] < end_of[from] ? &queue[next_of[from]++] : NULL;
}

static int compare(const void *a, const void *b) {
    return strcmp(((const struct object *)a)->name, ((const struct object *)b)->name);
}

/* Collects the objects of all machines that are not done; returns the number of this one's. */
static int scan(struct object **found) {
    int count = 0, room = 0;
    struct object *all = NULL;
    DIR *list = rank == keepers[machine] ? opendir(folder) : NULL;
    for (struct dirent *entry; list && (entry = readdir(list));) {
        struct shape *shape = shape_of(entry->d_name);
        if (!shape || length_of(entry->d_name, ".dft") == shape->results * 8L) continue;
        if (length_of(entry->d_name, "") != shape->doubles * 8L) stop("wrong length", entry->d_name);
        if (count == room) all = realloc(all, (size_t)(room = room ? 2 * room : 1024) * sizeof *all);
        if (!all) stop("no memory", "");
        all[count].machine = machine;
        memset(all[count].name, 0, NAME);
        strcpy(all[count++].name, entry->d_name);
    }
    if (list) closedir(list);
    if (count) qsort(all, (size_t)count, sizeof *all, compare);
    *found = all;
    return count;
}

static void gather(void) {
    struct object *own;
    int count = scan(&own), bytes = count * (int)sizeof *own;
    int *lengths = calloc((size_t)ranks, sizeof(int)), *starts = calloc((size_t)ranks + 1, sizeof(int));
    MPI_Gather(&bytes, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int who = 0; who < ranks; who++) starts[who + 1] = starts[who] + lengths[who];
    queued = starts[ranks] / (int)sizeof *own;
    queue = malloc((size_t)starts[ranks] + 1);
    MPI_Gatherv(own, bytes, MPI_BYTE, queue, lengths, starts, MPI_BYTE, 0, MPI_COMM_WORLD);
    next_of = calloc(MACHINES, sizeof(int));
    end_of = calloc(MACHINES, sizeof(int));
    for (int who = 0; rank == 0 && who < ranks; who++)
        if (lengths[who]) {
            next_of[machine_of[who]] = starts[who] / (int)sizeof *own;
            end_of[machine_of[who]] = starts[who + 1] / (int)sizeof *own;
        }
    left = queued;
    free(own), free(lengths), free(starts);
}

/* ---- messages ---- */

static void send(const void *bytes, size_t length, int to, enum tag tag) {
    MPI_Send(bytes, (int)length, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

/* Control messages to this rank itself, and to ranks that may be sending, are buffered. */
static void post(const void *bytes, size_t length, int to, enum tag tag) {
    MPI_Bsend(bytes, (int)length, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

static struct object current, given[AHEAD];
/* Objects in `given`; true while `current` is between two machines, on its way or its result. */
static int waiting, is_moving;
static MPI_Request moving;

static void done(void) { post(&current, sizeof current, 0, DONE); }

static void finish(void) {
    transform(current.name);
    if (machine_of[rank] == current.machine) {
        write_result(result.name, result.values);
        done();
    } else {
        size_t length = NAME + sizeof(double) * (size_t)shape_of(current.name)->results;
        /* The keeper takes it when it has time; until it says so, `result` stays as it is. */
        MPI_Isend(&result, (int)length, MPI_BYTE, keepers[current.machine], STORE, MPI_COMM_WORLD,
                  &moving);
    }
}

/* Begins the oldest object that was given. */
static void begin(void) {
    current = given[0];
    memmove(given, given + 1, (size_t)--waiting * sizeof *given);
    post("", 0, 0, ASK);
    if (current.machine == machine) {
        read_object(current.name, input);
        finish();
    } else {
        is_moving = 1;
        post(current.name, NAME, keepers[current.machine], FETCH);
    }
}

/* Waits for a message, and begins objects while none is there. */
static void wait_for_message(MPI_Status *status) {
    struct timespec rest = {0, SLEEP_MIN_NS};
    for (;;) {
        int is_there;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, status);
        if (is_there) return;
        if (waiting && !is_moving) {
            begin();
            rest.tv_nsec = SLEEP_MIN_NS;
        } else {
            nanosleep(&rest, NULL);
            if (rest.tv_nsec < SLEEP_MAX_NS) rest.tv_nsec *= 2;
        }
    }
}

static void answer(int who) {
    struct object *object = take(who);
    if (object) post(object, sizeof *object, who, GIVE);
}

static void handle(int from, enum tag tag, char *bytes, char (*names)[NAME]) {
    switch (tag) {
    case ASK:
        answer(from);
        break;
    case GIVE:
        if (waiting == AHEAD) stop("more objects than asked for", "");
        memcpy(&given[waiting++], bytes, sizeof *given);
        break;
    case FETCH: {
        static double values[DOUBLES];
        read_object(bytes, values);
        send(values, sizeof(double) * (size_t)shape_of(bytes)->doubles, from, DATA);
        break;
    }
    case DATA:
        memcpy(input, bytes, sizeof(double) * (size_t)shape_of(current.name)->doubles);
        finish();
        break;
    case STORE:
        write_result(bytes, (double *)(bytes + NAME));
        post("", 0, from, STORED);
        break;
    case STORED:
        MPI_Wait(&moving, MPI_STATUS_IGNORE);
        is_moving = 0;
        done();
        break;
    case DONE:
        note("done", (struct object *)bytes, names);
        left--;
        break;
    case END:
        break;
    }
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 2 || ranks > 4096) {
        if (rank == 0) fprintf(stderr, "usage: dft FOLDER\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    folder = words[1];
    char own[NAME] = "", (*all)[NAME] = calloc((size_t)ranks, NAME), names[MACHINES][NAME];
    gethostname(own, NAME - 1);
    MPI_Allgather(own, NAME, MPI_CHAR, all, NAME, MPI_CHAR, MPI_COMM_WORLD);
    for (int who = 0; who < ranks; who++) {
        int at = 0;
        while (at < machines && strcmp(names[at], all[who])) at++;
        if (at == MACHINES) stop("too many machines", "");
        if (at == machines) strcpy(names[machines], all[who]), keepers[machines++] = who;
        machine_of[who] = at;
    }
    machine = machine_of[rank];
    input = fftw_malloc(DOUBLES * sizeof *input);
    size_t room = 4096 * (size_t)(ranks + 1), most = NAME + sizeof result.values;
    MPI_Buffer_attach(malloc(room), (int)room);
    char *bytes = malloc(most), *path = getenv("CSD_JOURNAL");
    double begun = MPI_Wtime();
    gather();
    if (rank == 0 && path && *path && !(journal = fopen(path, "w"))) stop("no journal", path);
    for (int at = 0; rank == 0 && at < queued; at++) note("todo", &queue[at], names);
    for (int at = 0; at < AHEAD; at++) post("", 0, 0, ASK);
    int asked = 0, ended = 0, mine = 0;
    while (!ended) {
        MPI_Status status;
        int length;
        wait_for_message(&status);
        MPI_Get_count(&status, MPI_BYTE, &length);
        if (length > (int)most) stop("a message is too long", "");
        MPI_Recv(bytes, length, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        handle(status.MPI_SOURCE, status.MPI_TAG, bytes, names);
        ended = status.MPI_TAG == END;
        mine += status.MPI_TAG == GIVE;
        asked += status.MPI_TAG == ASK;
        /* All ranks have asked and wait, so none sends any more. */
        if (rank == 0 && !ended && left == 0 && asked == AHEAD * ranks + queued) {
            for (int who = 1; who < ranks; who++) post("", 0, who, END);
            ended = 1;
        }
    }
    int *each = calloc((size_t)ranks, sizeof(int));
    MPI_Gather(&mine, 1, MPI_INT, each, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d objects in %.3f s:", queued, MPI_Wtime() - begun);
        for (int who = 0; who < ranks; who++) printf(" %s %d", all[who], each[who]);
        printf("\n");
    }
    MPI_Finalize();
    return 0;
}
