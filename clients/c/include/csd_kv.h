/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * libcsd_kv: key-value namespaces of NVMe/TCP drives, of any maker.
 *
 * Functions that submit have the names, the order of arguments and the option bits of SPDK's
 * spdk/nvme_kv.h, with csd_kv_ in place of spdk_nvme_kv_. Each also has a blocking form whose name
 * ends in _wait. Any function may be called from any thread.
 *
 * Results. 0 is success, a negative number an errno:
 *   -EINVAL     a wrong argument, URL, option or namespace
 *   -ENOENT     the key does not exist          (NVMe status 87h)
 *   -EEXIST     the key exists                  (NVMe status 89h)
 *   -ENOSPC     the namespace is full           (NVMe status 81h)
 *   -EMSGSIZE   the value is too long, or an object is longer than its buffer
 *   -EIO        any other status of the drive, or damaged data
 *   -ENXIO      the drive cannot be reached, or the connection was lost and not made again
 *   -ETIMEDOUT  the drive does not answer
 *   -EAGAIN     other hosts replaced the object again and again while it was read
 *   -EACCES     the drive refuses this host, or one of the two could not prove its identity
 *   -ENOMEM     too many commands are under way: reap some first
 *   -EBADF      the handle is closed, or never was one
 *   -ESHUTDOWN  the namespace was closed while the command was under way
 *   -ECHILD     the handle belongs to the parent of this process; see Fork
 *   -ENOTRECOVERABLE  a bug in this library
 * csd_kv_last_error() says more.
 *
 * Lost connections. A command whose connection is lost is sent again on a new one, up to `tries`
 * times. A Store may so overwrite a value that another host has stored in between.
 *
 * Fork. The threads of this library exist only in the process that opened a namespace. In a child
 * every call with an inherited handle returns -ECHILD, at once and without a lock; the child opens
 * namespaces of its own. A child that calls exec needs nothing of this: all descriptors are
 * close-on-exec.
 *
 * Exit. A process may exit with commands under way; whether the drive executes them is open.
 */
#ifndef CSD_KV_H
#define CSD_KV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CSD_KV_KEY_MIN_LEN 1
#define CSD_KV_KEY_MAX_LEN 16

/* A namespace, and a queue of completions. Handles, not addresses: never dereferenced. */
typedef struct csd_kv_ns csd_kv_ns;
typedef struct csd_kv_qpair csd_kv_qpair;

/* Options of Store. */
enum csd_kv_store_option {
	CSD_KV_STORE_MUST_EXIST = 1 << 0,     /* only if the key exists */
	CSD_KV_STORE_MUST_NOT_EXIST = 1 << 1, /* only if the key does not exist */
	CSD_KV_STORE_NO_COMPRESS = 1 << 2     /* the drive shall not compress the value */
};

/* Options of Retrieve. */
enum csd_kv_retrieve_option {
	CSD_KV_RETRIEVE_RAW = 1 << 0 /* the value as the drive has stored it, not decompressed;
					changes nothing on drives of this project */
};

/* Options of csd_kv_open. Set them with csd_kv_open_opts_init first. */
struct csd_kv_open_opts {
	size_t opts_size;            /* sizeof(struct csd_kv_open_opts) */
	const char *secrets_file;    /* NULL: $CSD_SECRETS, else none */
	const char *host_nqn;        /* NULL: $CSD_HOST_NQN, else the one host of the secrets file,
	                                /etc/nvme/hostnqn, or a name of this machine */
	uint32_t tries;              /* reconnections that one command survives */
	uint32_t connect_timeout_ms;
	uint32_t command_timeout_ms; /* a drive that takes longer counts as gone */
	uint32_t queue_depth;        /* most commands under way */
};

/* Description of a namespace. */
struct csd_kv_ns_data {
	uint64_t nsze;   /* size, bytes */
	uint64_t nuse;   /* bytes in use */
	uint32_t nsid;
	uint32_t kvkml;  /* longest key, bytes */
	uint32_t kvvml;  /* longest value that one command transfers, bytes */
	uint32_t mnks;   /* most keys; 0 is no limit */
};

/* Completion of a command. */
struct csd_kv_cpl {
	int32_t error;   /* 0, or a negative errno as above */
	uint16_t status; /* NVMe status: Status Code Type in bits 10:8, Status Code in bits 7:0 */
	uint16_t reserved;
	uint32_t cdw0;   /* Retrieve: length of the whole value */
};

typedef void (*csd_kv_cmd_cb)(void *cb_arg, const struct csd_kv_cpl *cpl);

/* Sets all options to their defaults. */
void csd_kv_open_opts_init(struct csd_kv_open_opts *opts, size_t opts_size);

/* Connects to nvme+tcp://HOST:PORT/NQN[?nsid=N]; without nsid, to the drive's first key-value
 * namespace. `opts` may be NULL. */
int csd_kv_open(const char *url, const struct csd_kv_open_opts *opts, csd_kv_ns **ns);

/* Disconnects. Commands under way complete with -ESHUTDOWN. */
int csd_kv_close(csd_kv_ns *ns);

/* Asks the drive for the description of a namespace. Blocks. */
int csd_kv_ns_get_data(csd_kv_ns *ns, struct csd_kv_ns_data *data);

/* Returns the words for the last error of the calling thread; valid until its next call. */
const char *csd_kv_last_error(void);

/* ---- Blocking ---- */

int csd_kv_store_wait(csd_kv_ns *ns, const void *key, uint8_t key_len, const void *value,
		      uint32_t value_len, uint8_t options);

/* Writes the first value_len bytes of the value into `value`, and the length of the whole value
 * into `whole_len`, which may be NULL. A buffer that is too small is no error: compare. */
int csd_kv_retrieve_wait(csd_kv_ns *ns, const void *key, uint8_t key_len, void *value,
			 uint32_t value_len, uint32_t *whole_len);

int csd_kv_delete_wait(csd_kv_ns *ns, const void *key, uint8_t key_len);
int csd_kv_exist_wait(csd_kv_ns *ns, const void *key, uint8_t key_len);

/* Writes keys from start_key on (included if it exists; NULL for all) into `buffer`, in the layout
 * of the standard; csd_kv_list_next reads it. */
int csd_kv_list_wait(csd_kv_ns *ns, const void *start_key, uint8_t start_key_len, void *buffer,
		     uint32_t buffer_len);

/* Makes every Store and Delete durable that was answered before, to any host. Drives without a
 * volatile write cache answer at once. */
int csd_kv_flush_wait(csd_kv_ns *ns);

/* Finds the next key in the data of a List. `position` is 0 at first. Returns 1 and sets `key` to
 * a place in `buffer`; 0 at the end; -EINVAL for data that is no list. */
int csd_kv_list_next(const void *buffer, uint32_t buffer_len, uint64_t *position,
		     const void **key, uint8_t *key_len);

/* ---- Objects of any length, blocking ----
 *
 * An object that fits into one value is that value, so other clients of the standard read it. A
 * longer one is stored in pieces under keys of their own, and published by a small value under its
 * own key, which is stored last. A reader gets all bytes of one version, checked, or an error. A
 * host that ends while it stores an object leaves the old version, and perhaps pieces of the new
 * one, which `csd kv gc` finds. Each call is several commands; several threads make several calls
 * at once.
 *
 * csd_kv_store and csd_kv_delete on the key of a longer object leave its pieces behind. */

/* Stores an object; replaces an older one and its pieces. `options` as for Store. -EINVAL for a key
 * of 16 bytes that begins with F5 43 53 44: pieces have such keys. */
int csd_kv_object_store_wait(csd_kv_ns *ns, const void *key, uint8_t key_len, const void *object,
			     size_t object_len, uint8_t options);

/* Writes all bytes of the object into `object`, and its length into `whole_len`, which may be NULL.
 * If the object is longer than object_len, it sets whole_len, writes nothing else and returns
 * -EMSGSIZE: with an object_len of 0 it asks for the length. */
int csd_kv_object_retrieve_wait(csd_kv_ns *ns, const void *key, uint8_t key_len, void *object,
				size_t object_len, uint64_t *whole_len);

/* Deletes an object and its pieces. */
int csd_kv_object_delete_wait(csd_kv_ns *ns, const void *key, uint8_t key_len);

/* Returns 1 if a key that List has returned is that of a piece, else 0: never an error. */
int csd_kv_key_is_piece(const void *key, uint8_t key_len);

/* ---- Submit, wait for the descriptor, reap ---- */

/* Makes a queue of completions. */
int csd_kv_qpair_alloc(csd_kv_qpair **qpair);

/* Frees a queue. Callbacks of commands under way are not called, and their buffers are not touched
 * any more. */
int csd_kv_qpair_free(csd_kv_qpair *qpair);

/* Returns the queue's descriptor, an eventfd, for poll and its like: readable while there are
 * completions. Do not read or close it. */
int csd_kv_qpair_get_fd(csd_kv_qpair *qpair);

/* Calls the callbacks of at most max_completions commands (0: of all that have ended) on the
 * calling thread. Returns their number. */
int csd_kv_qpair_process_completions(csd_kv_qpair *qpair, uint32_t max_completions);

/* `value` is copied before the function returns. */
int csd_kv_store(csd_kv_ns *ns, csd_kv_qpair *qpair, const void *key, uint8_t key_len,
		 const void *value, uint32_t value_len, csd_kv_cmd_cb cb_fn, void *cb_arg,
		 uint8_t options);

/* `value` is written by csd_kv_qpair_process_completions, right before the callback. `options` as
 * in csd_kv_retrieve_option; the blocking form has none. */
int csd_kv_retrieve(csd_kv_ns *ns, csd_kv_qpair *qpair, const void *key, uint8_t key_len,
		    void *value, uint32_t value_len, csd_kv_cmd_cb cb_fn, void *cb_arg,
		    uint8_t options);

int csd_kv_delete(csd_kv_ns *ns, csd_kv_qpair *qpair, const void *key, uint8_t key_len,
		  csd_kv_cmd_cb cb_fn, void *cb_arg);

/* Completes with -ENOENT if the key does not exist. */
int csd_kv_exist(csd_kv_ns *ns, csd_kv_qpair *qpair, const void *key, uint8_t key_len,
		 csd_kv_cmd_cb cb_fn, void *cb_arg);

/* `buffer` is written as by csd_kv_retrieve. */
int csd_kv_list(csd_kv_ns *ns, csd_kv_qpair *qpair, const void *start_key, uint8_t start_key_len,
		void *buffer, uint32_t buffer_len, csd_kv_cmd_cb cb_fn, void *cb_arg);

#ifdef __cplusplus
}
#endif

#endif
