/* Stores a value and fetches it, blocking; then stores 100 values with poll and callbacks.
 *
 *   cc kv.c $(pkg-config --cflags --libs csd_kv) -o kv
 *   ./kv nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.csdstore:drive
 */
#include <csd_kv.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static int stop(const char *what, int result)
{
	fprintf(stderr, "%s: %s (%d)\n", what, csd_kv_last_error(), result);
	return 1;
}

struct progress {
	int stored, failed;
};

static void stored(void *cb_arg, const struct csd_kv_cpl *cpl)
{
	struct progress *progress = cb_arg;

	if (cpl->error == 0)
		progress->stored++;
	else
		progress->failed++;
}

int main(int argc, char **argv)
{
	csd_kv_ns *ns;
	csd_kv_qpair *qpair;
	char value[16];
	uint32_t len;
	struct progress progress = {0, 0};
	int result;

	if (argc != 2) {
		fprintf(stderr, "usage: %s URL\n", argv[0]);
		return 2;
	}
	if ((result = csd_kv_open(argv[1], NULL, &ns)) < 0)
		return stop("open", result);

	if ((result = csd_kv_store_wait(ns, "greeting", 8, "hello", 5, 0)) < 0)
		return stop("store", result);
	if ((result = csd_kv_retrieve_wait(ns, "greeting", 8, value, sizeof(value), &len)) < 0)
		return stop("retrieve", result);
	printf("greeting: %.*s\n", (int)len, value);

	if ((result = csd_kv_qpair_alloc(&qpair)) < 0)
		return stop("qpair", result);
	for (uint32_t i = 0; i < 100; i++) {
		char key[17];
		int key_len = snprintf(key, sizeof(key), "number-%u", i);

		result = csd_kv_store(ns, qpair, key, (uint8_t)key_len, &i, sizeof(i), stored,
				      &progress, CSD_KV_STORE_NO_COMPRESS);
		if (result < 0)
			return stop("submit", result);
	}
	struct pollfd ready = {.fd = csd_kv_qpair_get_fd(qpair), .events = POLLIN};
	while (progress.stored + progress.failed < 100) {
		poll(&ready, 1, -1);
		if ((result = csd_kv_qpair_process_completions(qpair, 0)) < 0)
			return stop("reap", result);
	}
	printf("stored %d values, %d failed\n", progress.stored, progress.failed);
	csd_kv_qpair_free(qpair);
	csd_kv_close(ns);
	return progress.failed != 0;
}
