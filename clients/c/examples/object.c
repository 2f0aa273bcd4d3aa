/* Stores a file of any length as an object, and fetches or deletes objects.
 *
 *   cc object.c $(pkg-config --cflags --libs csd_kv) -o object
 *   ./object URL put KEY FILE
 *   ./object URL get KEY FILE
 *   ./object URL rm KEY
 */
#include <csd_kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int stop(const char *what, int result)
{
	fprintf(stderr, "%s: %s (%d)\n", what, csd_kv_last_error(), result);
	return 1;
}

static int stop_file(const char *file)
{
	perror(file);
	return 1;
}

static int put(csd_kv_ns *ns, const char *key, const char *path)
{
	FILE *file = fopen(path, "rb");
	long len;
	char *bytes;
	int result;

	if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (len = ftell(file)) < 0)
		return stop_file(path);
	rewind(file);
	bytes = malloc((size_t)len + 1);
	if (bytes == NULL || fread(bytes, 1, (size_t)len, file) != (size_t)len)
		return stop_file(path);
	fclose(file);
	result = csd_kv_object_store_wait(ns, key, (uint8_t)strlen(key), bytes, (size_t)len, 0);
	free(bytes);
	return result < 0 ? stop("store", result) : 0;
}

static int get(csd_kv_ns *ns, const char *key, const char *path)
{
	uint8_t key_len = (uint8_t)strlen(key);
	char *bytes = NULL;
	uint64_t len = 0;
	int result;

	/* The first call asks for the length. Another host may replace the object in between. */
	while ((result = csd_kv_object_retrieve_wait(ns, key, key_len, bytes, len, &len)) ==
	       -EMSGSIZE) {
		free(bytes);
		bytes = malloc(len);
		if (bytes == NULL)
			return stop_file(path);
	}
	if (result < 0) {
		free(bytes);
		return stop("retrieve", result);
	}
	FILE *file = fopen(path, "wb");
	if (file == NULL || fwrite(bytes, 1, len, file) != len || fclose(file) != 0)
		return stop_file(path);
	printf("%s: %llu bytes\n", path, (unsigned long long)len);
	free(bytes);
	return 0;
}

static int rm(csd_kv_ns *ns, const char *key)
{
	int result = csd_kv_object_delete_wait(ns, key, (uint8_t)strlen(key));

	return result < 0 ? stop("delete", result) : 0;
}

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s URL put|get KEY FILE, or URL rm KEY\n", program);
	return 2;
}

int main(int argc, char **argv)
{
	csd_kv_ns *ns;
	int result;

	if (argc < 4 || strlen(argv[3]) > CSD_KV_KEY_MAX_LEN)
		return usage(argv[0]);
	if ((result = csd_kv_open(argv[1], NULL, &ns)) < 0)
		return stop("open", result);
	if (argc == 5 && strcmp(argv[2], "put") == 0)
		result = put(ns, argv[3], argv[4]);
	else if (argc == 5 && strcmp(argv[2], "get") == 0)
		result = get(ns, argv[3], argv[4]);
	else if (argc == 4 && strcmp(argv[2], "rm") == 0)
		result = rm(ns, argv[3]);
	else
		result = usage(argv[0]);
	csd_kv_close(ns);
	return result;
}
