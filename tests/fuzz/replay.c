/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target on files, so that an ordinary test run replays the corpus. Operands are files,
 * and directories of which all files are used. Each input is copied to a heap block of exactly its
 * size, so that address sanitizer detects an overrun of one byte.
 *
 * If a target has a mutator, it also runs on MUTANTS mutants of each file of a directory, with
 * fixed seeds; on MUTANTS_LONG if all tests run at full size (sampling.h). With
 * HSMOUNT_FUZZ_KEEP=FILE each mutant is written to FILE before it runs. After a crash FILE holds
 * the input that crashed.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sampling.h"

enum { MUTANTS = 24, MUTANTS_LONG = 600, MUTANT_MAX = 256 << 10, GENERATIONS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
	__attribute__((weak));

static void run_exact(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);
	if (!exact)
		abort();
	if (size)
		memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void keep(const uint8_t *data, size_t size)
{
	const char *path = getenv("HSMOUNT_FUZZ_KEEP");
	FILE *f = path ? fopen(path, "wb") : NULL;
	if (f && (fwrite(data, 1, size, f) != size || fclose(f)))
		perror(path);
}

static void run_mutants(const char *path, const uint8_t *data, size_t size)
{
	const unsigned int n = sampling_everything() ? MUTANTS_LONG : MUTANTS;
	uint8_t *mutant = malloc(MUTANT_MAX);
	if (!mutant || size > MUTANT_MAX)
		abort();
	for (unsigned int seed = 0; seed < n; seed++) {
		size_t len = size;
		if (size)
			memcpy(mutant, data, size);
		for (unsigned int i = 0; i <= seed % GENERATIONS; i++)
			len = LLVMFuzzerCustomMutator(mutant, len, MUTANT_MAX,
						      seed * GENERATIONS + i);
		printf("%s, seed %u\n", path, seed);
		fflush(stdout);
		keep(mutant, len);
		run_exact(mutant, len);
	}
	free(mutant);
}

static int run_file(const char *path, bool mutate)
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
			run_exact(data, size);
			if (mutate && LLVMFuzzerCustomMutator)
				run_mutants(path, data, size);
			rc = 0;
		}
	}
	if (rc)
		fprintf(stderr, "cannot read %s\n", path);
	free(data);
	fclose(f);
	return rc;
}

/* named: the path is an operand, not a file of a directory. */
static int run_path(const char *path, bool named, unsigned int *count)
{
	struct stat st;
	if (stat(path, &st)) {
		perror(path);
		return -1;
	}
	if (!S_ISDIR(st.st_mode)) {
		(*count)++;
		return run_file(path, !named);
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
		if (run_path(child, false, count))
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
		if (run_path(argv[i], true, &count))
			rc = 1;
	printf("%u inputs replayed\n", count);
	if (count == 0) {
		fprintf(stderr, "no input files: the corpus is missing\n");
		rc = 1;
	}
	return rc;
}
