/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of the directories and files named on the command line, so
 * that an ordinary test run replays the corpus. Each input is copied to a heap block of exactly
 * its size: address sanitizer sees an overrun of one byte.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return -1;
	}
	struct stat st;
	uint8_t *data = NULL;
	int rc = -1;
	if (fstat(fileno(f), &st) == 0) {
		size_t size = (size_t)st.st_size;
		data = malloc(size ? size : 1);
		if (data && fread(data, 1, size, f) == size) {
			uint8_t *exact = size ? realloc(data, size) : data;
			data = exact ? exact : data;
			LLVMFuzzerTestOneInput(data, size);
			rc = 0;
		}
	}
	if (rc)
		fprintf(stderr, "%s: cannot be read\n", path);
	free(data);
	fclose(f);
	return rc;
}

static int run_path(const char *path, unsigned int *count)
{
	struct stat st;
	if (stat(path, &st)) {
		perror(path);
		return -1;
	}
	if (!S_ISDIR(st.st_mode)) {
		(*count)++;
		return run_file(path);
	}
	DIR *dir = opendir(path);
	if (!dir) {
		perror(path);
		return -1;
	}
	int rc = 0;
	struct dirent *entry;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		char child[4096];
		if (snprintf(child, sizeof(child), "%s/%s", path, entry->d_name) >=
		    (int)sizeof(child))
			continue;
		if (run_path(child, count))
			rc = -1;
	}
	closedir(dir);
	return rc;
}

int main(int argc, char **argv)
{
	unsigned int count = 0;
	int rc = 0;
	for (int i = 1; i < argc; i++)
		if (run_path(argv[i], &count))
			rc = 1;
	printf("%u inputs replayed\n", count);
	if (count == 0) {
		fprintf(stderr, "no input: the corpus is missing\n");
		rc = 1;
	}
	return rc;
}
