/* Checks of libcsd_kv from C: checks NAME URL. Each ends with 0, or says what was wrong. */
#include <csd_kv.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(what, expected)                                                                     \
	do {                                                                                       \
		long got_ = (long)(what), wanted_ = (long)(expected);                              \
		if (got_ != wanted_) {                                                             \
			fprintf(stderr, "line %d: %s is %ld, not %ld: %s\n", __LINE__, #what,      \
				got_, wanted_, csd_kv_last_error());                               \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static const char *url;

static csd_kv_ns *opened(void)
{
	csd_kv_ns *ns = NULL;

	EXPECT(csd_kv_open(url, NULL, &ns), 0);
	return ns;
}

struct seen {
	int calls, errors, last;
	uint32_t cdw0;
	uint16_t status;
};

static void note(void *cb_arg, const struct csd_kv_cpl *cpl)
{
	struct seen *seen = cb_arg;

	seen->calls++;
	seen->errors += cpl->error != 0;
	seen->last = cpl->error;
	seen->cdw0 = cpl->cdw0;
	seen->status = cpl->status;
}

static void reap(csd_kv_qpair *qpair, const struct seen *seen, int calls)
{
	struct pollfd ready = {.fd = csd_kv_qpair_get_fd(qpair), .events = POLLIN};

	while (seen->calls < calls) {
		poll(&ready, 1, -1);
		if (csd_kv_qpair_process_completions(qpair, 0) < 0)
			EXPECT(1, 0);
	}
}

static void blocking(void)
{
	csd_kv_ns *ns = opened();
	struct csd_kv_ns_data data;
	char buffer[64];
	uint32_t len = 7;

	EXPECT(csd_kv_ns_get_data(ns, &data), 0);
	EXPECT(data.nsid, 2);
	EXPECT(data.kvkml, 16);
	EXPECT(data.nsze > 0 && data.kvvml > 0, 1);
	EXPECT(csd_kv_exist_wait(ns, "k", 1), -ENOENT);
	EXPECT(csd_kv_retrieve_wait(ns, "k", 1, buffer, sizeof(buffer), &len), -ENOENT);
	EXPECT(csd_kv_store_wait(ns, "k", 1, "value", 5, CSD_KV_STORE_MUST_EXIST), -ENOENT);
	EXPECT(csd_kv_store_wait(ns, "k", 1, "value", 5, CSD_KV_STORE_MUST_NOT_EXIST), 0);
	EXPECT(csd_kv_store_wait(ns, "k", 1, "other", 5, CSD_KV_STORE_MUST_NOT_EXIST), -EEXIST);
	EXPECT(csd_kv_exist_wait(ns, "k", 1), 0);
	EXPECT(csd_kv_retrieve_wait(ns, "k", 1, buffer, sizeof(buffer), &len), 0);
	EXPECT(len == 5 && memcmp(buffer, "value", 5) == 0, 1);
	EXPECT(csd_kv_store_wait(ns, "empty", 5, NULL, 0, 0), 0);
	EXPECT(csd_kv_retrieve_wait(ns, "empty", 5, NULL, 0, &len), 0);
	EXPECT(len, 0);
	EXPECT(csd_kv_delete_wait(ns, "k", 1), 0);
	EXPECT(csd_kv_exist_wait(ns, "k", 1), -ENOENT);
	EXPECT(csd_kv_store_wait(ns, "", 0, "x", 1, 0), -EINVAL);
	EXPECT(csd_kv_store_wait(ns, "seventeen letters", 17, "x", 1, 0), -EINVAL);
	EXPECT(csd_kv_store_wait(ns, "k", 1, NULL, 1, 0), -EINVAL);
	EXPECT(csd_kv_store_wait(ns, "k", 1, "x", 1, 8), -EINVAL);
	EXPECT(csd_kv_store_wait(ns, "k", 1, "x", 1, 3), -EINVAL);
	char *large = calloc(1, data.kvvml + 1);
	EXPECT(csd_kv_store_wait(ns, "k", 1, large, data.kvvml + 1, 0), -EMSGSIZE);
	EXPECT(strstr(csd_kv_last_error(), "bytes") != NULL, 1);
	free(large);
	EXPECT(csd_kv_close(ns), 0);
}

static void small_buffer(void)
{
	csd_kv_ns *ns = opened();
	char buffer[8];
	uint32_t len = 0;
	csd_kv_qpair *qpair;
	struct seen seen = {0};

	EXPECT(csd_kv_store_wait(ns, "k", 1, "0123456789", 10, 0), 0);
	memset(buffer, '#', sizeof(buffer));
	EXPECT(csd_kv_retrieve_wait(ns, "k", 1, buffer, 4, &len), 0);
	EXPECT(len, 10);
	EXPECT(memcmp(buffer, "0123####", 8), 0);
	EXPECT(csd_kv_retrieve_wait(ns, "k", 1, NULL, 0, &len), 0);
	EXPECT(len, 10);
	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	memset(buffer, '#', sizeof(buffer));
	EXPECT(csd_kv_retrieve(ns, qpair, "k", 1, buffer, 3, note, &seen, 0), 0);
	reap(qpair, &seen, 1);
	EXPECT(seen.last, 0);
	EXPECT(seen.cdw0, 10);
	EXPECT(memcmp(buffer, "012#####", 8), 0);
	for (int unknown = 1; unknown < 8; unknown++)
		EXPECT(csd_kv_retrieve(ns, qpair, "k", 1, buffer, 3, note, &seen,
				       (uint8_t)(1 << unknown)),
		       -EINVAL);
	EXPECT(csd_kv_list_wait(ns, NULL, 0, buffer, 3), -EINVAL);
	EXPECT(csd_kv_list_wait(ns, NULL, 0, buffer, 4), 0);
}

/* Three Retrieves, of which the second one has an option. */
static void raw(void)
{
	csd_kv_ns *ns = opened();
	csd_kv_qpair *qpair;
	struct seen seen = {0};
	char buffer[8];
	uint32_t len = 0;

	EXPECT(csd_kv_store_wait(ns, "k", 1, "value", 5, 0), 0);
	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	for (uint8_t options = 0; options <= CSD_KV_RETRIEVE_RAW; options++) {
		memset(buffer, '#', sizeof(buffer));
		EXPECT(csd_kv_retrieve(ns, qpair, "k", 1, buffer, 8, note, &seen, options), 0);
		reap(qpair, &seen, options + 1);
		EXPECT(seen.last, 0);
		EXPECT(seen.cdw0, 5);
		EXPECT(memcmp(buffer, "value###", 8), 0);
	}
	EXPECT(csd_kv_retrieve_wait(ns, "k", 1, buffer, sizeof(buffer), &len), 0);
	EXPECT(len, 5);
	EXPECT(csd_kv_close(ns), 0);
}

static void listing(void)
{
	csd_kv_ns *ns = opened();
	char key[17];
	static char buffer[4096];
	const void *found;
	uint8_t len;
	uint64_t position = 0;
	int count = 0;

	for (int i = 0; i < 50; i++) {
		int key_len = snprintf(key, sizeof(key), "key-%02d", i);
		EXPECT(csd_kv_store_wait(ns, key, (uint8_t)key_len, &i, sizeof(i), 0), 0);
	}
	EXPECT(csd_kv_list_wait(ns, NULL, 0, buffer, sizeof(buffer)), 0);
	while (csd_kv_list_next(buffer, sizeof(buffer), &position, &found, &len) == 1) {
		EXPECT(len == 6 && memcmp(found, "key-", 4) == 0, 1);
		count++;
	}
	EXPECT(count, 50);
	csd_kv_qpair *qpair;
	struct seen seen = {0};
	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	memset(buffer, 0, sizeof(buffer));
	EXPECT(csd_kv_list(ns, qpair, found, len, buffer, sizeof(buffer), note, &seen), 0);
	reap(qpair, &seen, 1);
	EXPECT(seen.last, 0);
	position = 0;
	EXPECT(csd_kv_list_next(buffer, sizeof(buffer), &position, &found, &len), 1);
	memset(buffer, 0xFF, sizeof(buffer));
	position = 0;
	EXPECT(csd_kv_list_next(buffer, sizeof(buffer), &position, &found, &len), -EINVAL);
}

/* A queue that is too shallow, and completions of every kind. */
static void submitting(void)
{
	struct csd_kv_open_opts opts;
	csd_kv_ns *ns;
	csd_kv_qpair *qpair;
	struct seen seen = {0};
	int full = 0, calls = 0;

	csd_kv_open_opts_init(&opts, sizeof(opts));
	opts.queue_depth = 4;
	EXPECT(csd_kv_open(url, &opts, &ns), 0);
	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	while (calls < 500) {
		int result = csd_kv_store(ns, qpair, &calls, sizeof(calls), "v", 1, note, &seen, 0);
		if (result == -ENOMEM) {
			full++;
			csd_kv_qpair_process_completions(qpair, 0);
			continue;
		}
		EXPECT(result, 0);
		calls++;
	}
	reap(qpair, &seen, calls);
	EXPECT(seen.calls, 500);
	EXPECT(seen.errors, 0);
	EXPECT(full > 0, 1);
	EXPECT(csd_kv_exist(ns, qpair, "none", 4, note, &seen), 0);
	reap(qpair, &seen, 501);
	EXPECT(seen.last, -ENOENT);
	EXPECT(seen.status, 0x87);
	EXPECT(csd_kv_delete(ns, qpair, &(int){0}, sizeof(int), note, &seen), 0);
	reap(qpair, &seen, 502);
	EXPECT(seen.last, 0);
	EXPECT(csd_kv_store(ns, qpair, "k", 1, "v", 1, NULL, NULL, 0), 0);
	EXPECT(csd_kv_qpair_free(qpair), 0);
	EXPECT(csd_kv_close(ns), 0);
}

static void *hammer(void *argument)
{
	csd_kv_ns *ns = argument;
	char key[17], value[17];
	uint32_t len;

	for (int i = 0; i < 300; i++) {
		int key_len = snprintf(key, sizeof(key), "%lx-%d", (long)pthread_self() & 0xFFFFFF, i);
		EXPECT(csd_kv_store_wait(ns, key, (uint8_t)key_len, key, (uint32_t)key_len, 0), 0);
		EXPECT(csd_kv_retrieve_wait(ns, key, (uint8_t)key_len, value, 16, &len), 0);
		EXPECT(len == (uint32_t)key_len && memcmp(key, value, len) == 0, 1);
	}
	/* Words of errors belong to the thread. */
	EXPECT(csd_kv_exist_wait(ns, "none", 4), -ENOENT);
	EXPECT(strstr(csd_kv_last_error(), "does not exist") != NULL, 1);
	return NULL;
}

static void threads(void)
{
	csd_kv_ns *ns = opened();
	pthread_t two[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&two[i], NULL, hammer, ns);
	for (int i = 0; i < 2; i++)
		pthread_join(two[i], NULL);
	EXPECT(csd_kv_close(ns), 0);
}

static void closed(void)
{
	csd_kv_ns *ns = opened();
	csd_kv_qpair *qpair;
	struct seen seen = {0};
	char buffer[16];

	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	EXPECT(csd_kv_store_wait(ns, "k", 1, "v", 1, 0), 0);
	for (int i = 0; i < 100; i++)
		EXPECT(csd_kv_retrieve(ns, qpair, "k", 1, buffer, 16, note, &seen, 0), 0);
	EXPECT(csd_kv_close(ns), 0);
	/* Each of the commands under way has ended, with its value or an error. */
	EXPECT(csd_kv_qpair_process_completions(qpair, 0), 100);
	EXPECT(seen.calls, 100);
	EXPECT(csd_kv_exist_wait(ns, "k", 1), -EBADF);
	EXPECT(csd_kv_store(ns, qpair, "k", 1, "v", 1, note, &seen, 0), -EBADF);
	EXPECT(csd_kv_close(ns), -EBADF);
	EXPECT(csd_kv_exist_wait(NULL, "k", 1), -EBADF);
	EXPECT(csd_kv_exist_wait((csd_kv_ns *)qpair, "k", 1), -EBADF);
	EXPECT(csd_kv_close((csd_kv_ns *)qpair), -EBADF);
	EXPECT(csd_kv_qpair_free(qpair), 0);
	EXPECT(csd_kv_qpair_free(qpair), -EBADF);
	EXPECT(csd_kv_qpair_get_fd(qpair), -EBADF);
	EXPECT(csd_kv_open("http://x", NULL, &ns), -EINVAL);
	EXPECT(csd_kv_open(NULL, NULL, &ns), -EINVAL);
	EXPECT(csd_kv_open("nvme+tcp://127.0.0.1:1/nqn.2026-11.io.csdstore:x", NULL, &ns), -ENXIO);
}

static void forked(void)
{
	csd_kv_ns *ns = opened();
	csd_kv_qpair *qpair;
	struct seen seen = {0};
	int status;

	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	EXPECT(csd_kv_store_wait(ns, "k", 1, "v", 1, 0), 0);
	EXPECT(csd_kv_exist(ns, qpair, "k", 1, note, &seen), 0);
	pid_t child = fork();
	if (child == 0) {
		EXPECT(csd_kv_exist_wait(ns, "k", 1), -ECHILD);
		EXPECT(csd_kv_object_store_wait(ns, "k", 1, "v", 1, 0), -ECHILD);
		EXPECT(csd_kv_flush_wait(ns), -ECHILD);
		EXPECT(csd_kv_exist(ns, qpair, "k", 1, note, &seen), -ECHILD);
		EXPECT(csd_kv_qpair_process_completions(qpair, 0), -ECHILD);
		EXPECT(strstr(csd_kv_last_error(), "forked") != NULL, 1);
		csd_kv_ns *own = opened();
		EXPECT(csd_kv_exist_wait(own, "k", 1), 0);
		EXPECT(csd_kv_exist_wait(ns, "k", 1), -ECHILD);
		EXPECT(csd_kv_close(ns), -ECHILD);
		EXPECT(csd_kv_close(own), 0);
		exit(42);
	}
	EXPECT(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 42, 1);
	/* The parent goes on, and its completion was not taken. */
	reap(qpair, &seen, 1);
	EXPECT(seen.last, 0);
	EXPECT(csd_kv_exist_wait(ns, "k", 1), 0);
	EXPECT(csd_kv_close(ns), 0);
}

static void exiting(void)
{
	csd_kv_ns *ns = opened();
	csd_kv_qpair *qpair;
	struct seen *seen = calloc(1, sizeof(*seen));
	static char value[100000];

	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	for (int i = 0; i < 200; i++)
		EXPECT(csd_kv_store(ns, qpair, &i, sizeof(i), value, sizeof(value), note, seen, 0), 0);
	free(seen);
	exit(0);
}

static void wrong_secret(void)
{
	csd_kv_ns *ns;
	struct csd_kv_open_opts opts;

	/* $CSD_SECRETS names a file with another secret. */
	EXPECT(csd_kv_open(url, NULL, &ns), -EACCES);
	csd_kv_open_opts_init(&opts, sizeof(opts));
	opts.secrets_file = getenv("RIGHT_SECRETS");
	EXPECT(csd_kv_open(url, &opts, &ns), 0);
	EXPECT(csd_kv_close(ns), 0);
	opts.secrets_file = "/nowhere/secrets";
	EXPECT(csd_kv_open(url, &opts, &ns), -EINVAL);
	opts.secrets_file = getenv("RIGHT_SECRETS");
	opts.host_nqn = "nqn.2026-11.io.csdstore:stranger";
	EXPECT(csd_kv_open(url, &opts, &ns), -EACCES);
	opts.host_nqn = "stranger";
	EXPECT(csd_kv_open(url, &opts, &ns), -EINVAL);
	opts.opts_size--;
	EXPECT(csd_kv_open(url, &opts, &ns), -EINVAL);
}

/* Fills the namespace; it takes values again after a Delete. */
static void full(void)
{
	csd_kv_ns *ns = opened();
	static char value[50000];
	char key[8];
	int error = 0, stored = 0;
	struct seen seen = {0};
	csd_kv_qpair *qpair;

	for (; stored < 10000; stored++) {
		snprintf(key, sizeof(key), "k%d", stored);
		error = csd_kv_store_wait(ns, key, strlen(key), value, sizeof(value), 0);
		if (error)
			break;
	}
	EXPECT(error, -ENOSPC);
	EXPECT(strstr(csd_kv_last_error(), "capacity exceeded") != NULL, 1);
	EXPECT(stored > 100, 1);
	EXPECT(csd_kv_exist_wait(ns, key, strlen(key)), -ENOENT);
	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	EXPECT(csd_kv_store(ns, qpair, key, strlen(key), value, sizeof(value), note, &seen, 0), 0);
	reap(qpair, &seen, 1);
	EXPECT(seen.last, -ENOSPC);
	EXPECT(seen.status, 0x81);
	EXPECT(csd_kv_delete_wait(ns, "k0", 2), 0);
	EXPECT(csd_kv_store_wait(ns, key, strlen(key), value, sizeof(value), 0), 0);
	EXPECT(csd_kv_close(ns), 0);
}

/* Returns bytes that differ from place to place. */
static char *some_bytes(size_t len)
{
	char *bytes = malloc(len);

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i * 2654435761u >> 11);
	return bytes;
}

/* Counts the keys of pieces and the others. */
static void count_keys(csd_kv_ns *ns, int *pieces, int *others)
{
	static char buffer[65536];
	const void *key;
	uint8_t len;
	uint64_t position = 0;

	*pieces = *others = 0;
	EXPECT(csd_kv_list_wait(ns, NULL, 0, buffer, sizeof(buffer)), 0);
	while (csd_kv_list_next(buffer, sizeof(buffer), &position, &key, &len) == 1) {
		int is_piece = csd_kv_key_is_piece(key, len);
		EXPECT(is_piece == 0 || is_piece == 1, 1);
		*pieces += is_piece;
		*others += !is_piece;
	}
}

static void objects(void)
{
	csd_kv_ns *ns = opened();
	struct csd_kv_ns_data data;
	uint64_t len = 7;
	int pieces, others;

	EXPECT(csd_kv_ns_get_data(ns, &data), 0);
	size_t long_len = (size_t)data.kvvml * 3 + 5;
	char *object = some_bytes(long_len), *found = calloc(1, long_len + 1);

	EXPECT(csd_kv_object_retrieve_wait(ns, "o", 1, found, long_len, &len), -ENOENT);
	EXPECT(len, 7);
	EXPECT(csd_kv_object_delete_wait(ns, "o", 1), -ENOENT);
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, object, long_len, CSD_KV_STORE_MUST_EXIST),
	       -ENOENT);
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, object, long_len, CSD_KV_STORE_MUST_NOT_EXIST),
	       0);
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, object, 5, CSD_KV_STORE_MUST_NOT_EXIST),
	       -EEXIST);
	count_keys(ns, &pieces, &others);
	EXPECT(pieces >= 4 && others == 1, 1);
	/* It asks for the length; one byte too few is too few. */
	EXPECT(csd_kv_object_retrieve_wait(ns, "o", 1, NULL, 0, &len), -EMSGSIZE);
	EXPECT(len, long_len);
	EXPECT(csd_kv_object_retrieve_wait(ns, "o", 1, found, long_len - 1, NULL), -EMSGSIZE);
	EXPECT(strstr(csd_kv_last_error(), "the buffer") != NULL, 1);
	EXPECT(found[0], 0);
	EXPECT(csd_kv_object_retrieve_wait(ns, "o", 1, found, long_len + 1, &len), 0);
	EXPECT(len == long_len && memcmp(found, object, long_len) == 0, 1);
	EXPECT(found[long_len], 0);
	/* A shorter version is one value, which other clients read, and leaves no piece. */
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, object, 5, 0), 0);
	EXPECT(csd_kv_flush_wait(ns), 0);
	uint32_t value_len;
	EXPECT(csd_kv_retrieve_wait(ns, "o", 1, found, 16, &value_len), 0);
	EXPECT(value_len == 5 && memcmp(found, object, 5) == 0, 1);
	count_keys(ns, &pieces, &others);
	EXPECT(pieces == 0 && others == 1, 1);
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, NULL, 0, 0), 0);
	EXPECT(csd_kv_object_retrieve_wait(ns, "o", 1, NULL, 0, &len), 0);
	EXPECT(len, 0);
	/* A piece that is gone is damage, and named. */
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, object, long_len, 0), 0);
	static char list[65536];
	const void *key;
	uint8_t key_len;
	uint64_t position = 0;
	EXPECT(csd_kv_list_wait(ns, NULL, 0, list, sizeof(list)), 0);
	do
		EXPECT(csd_kv_list_next(list, sizeof(list), &position, &key, &key_len), 1);
	while (csd_kv_key_is_piece(key, key_len) == 0);
	EXPECT(csd_kv_delete_wait(ns, key, key_len), 0);
	EXPECT(csd_kv_object_retrieve_wait(ns, "o", 1, found, long_len, &len), -EIO);
	EXPECT(strstr(csd_kv_last_error(), "missing") != NULL, 1);
	EXPECT(csd_kv_object_delete_wait(ns, "o", 1), 0);
	count_keys(ns, &pieces, &others);
	EXPECT(pieces == 0 && others == 0, 1);
	/* Wrong arguments. */
	EXPECT(csd_kv_object_store_wait(ns, "", 0, "x", 1, 0), -EINVAL);
	EXPECT(csd_kv_object_store_wait(ns, "seventeen letters", 17, "x", 1, 0), -EINVAL);
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, NULL, 1, 0), -EINVAL);
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, "x", 1, 8), -EINVAL);
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, object, long_len, 3), -EINVAL);
	EXPECT(csd_kv_object_retrieve_wait(ns, "o", 1, NULL, 1, &len), -EINVAL);
	EXPECT(csd_kv_object_delete_wait(ns, "", 0), -EINVAL);
	const char piece_key[17] = "\xF5" "CSD12345678" "\0\0\0\0";
	EXPECT(csd_kv_object_store_wait(ns, piece_key, 16, "x", 1, 0), -EINVAL);
	EXPECT(strstr(csd_kv_last_error(), "another key") != NULL, 1);
	EXPECT(csd_kv_key_is_piece(piece_key, 16), 1);
	EXPECT(csd_kv_key_is_piece(piece_key, 15), 0);
	EXPECT(csd_kv_key_is_piece(piece_key, 17), 0);
	EXPECT(csd_kv_key_is_piece("", 0), 0);
	EXPECT(csd_kv_key_is_piece(NULL, 0), 0);
	EXPECT(csd_kv_key_is_piece(NULL, 16), 0);
	EXPECT(csd_kv_close(ns), 0);
	EXPECT(csd_kv_object_store_wait(ns, "o", 1, "x", 1, 0), -EBADF);
	EXPECT(csd_kv_object_retrieve_wait(ns, "o", 1, found, 1, &len), -EBADF);
	EXPECT(csd_kv_object_delete_wait(ns, "o", 1), -EBADF);
	EXPECT(csd_kv_flush_wait(ns), -EBADF);
	free(object);
	free(found);
}

/* Says "ready", and waits until the drive is gone. */
static void gone(void)
{
	struct csd_kv_open_opts opts;
	csd_kv_ns *ns;
	csd_kv_qpair *qpair;
	struct seen seen = {0};
	char line[8];

	csd_kv_open_opts_init(&opts, sizeof(opts));
	opts.tries = 1;
	EXPECT(csd_kv_open(url, &opts, &ns), 0);
	EXPECT(csd_kv_store_wait(ns, "k", 1, "v", 1, 0), 0);
	EXPECT(csd_kv_qpair_alloc(&qpair), 0);
	puts("ready");
	fflush(stdout);
	EXPECT(fgets(line, sizeof(line), stdin) != NULL, 1);
	EXPECT(csd_kv_exist(ns, qpair, "k", 1, note, &seen), 0);
	reap(qpair, &seen, 1);
	EXPECT(seen.last, -ENXIO);
	EXPECT(csd_kv_exist_wait(ns, "k", 1), -ENXIO);
	EXPECT(csd_kv_object_store_wait(ns, "k", 1, "v", 1, 0), -ENXIO);
	puts("gone");
	fflush(stdout);
	EXPECT(fgets(line, sizeof(line), stdin) != NULL, 1);
	/* It is back. */
	EXPECT(csd_kv_exist_wait(ns, "k", 1), 0);
	EXPECT(csd_kv_close(ns), 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{"blocking", blocking}, {"small_buffer", small_buffer}, {"listing", listing},
		{"submitting", submitting}, {"threads", threads}, {"closed", closed},
		{"forked", forked}, {"exiting", exiting}, {"wrong_secret", wrong_secret},
		{"gone", gone}, {"objects", objects}, {"full", full}, {"raw", raw},
	};

	if (argc != 3)
		return 2;
	url = argv[2];
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(all[i].name, argv[1]) == 0) {
			all[i].run();
			return 0;
		}
	}
	return 2;
}
