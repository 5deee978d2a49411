/* SPDX-License-Identifier: Apache-2.0 */
/* See linked_file.h. The file is made once by libhdf5, in memory, while no history runs. */
#include "linked_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

enum { PER_DATASET = LINKED_DATA / 2, CHUNK = 256, FILE_MAX = 64 << 10, NUMBER = 8 };
static const uint8_t magic[4] = {0xd7, 'l', 'n', 'k'};

/* A number: its place, its version, and the magic. */
static void put_number(uint8_t *p, unsigned int place, uint16_t version)
{
	p[0] = (uint8_t)place;
	p[1] = (uint8_t)(place >> 8);
	p[2] = (uint8_t)version;
	p[3] = (uint8_t)(version >> 8);
	memcpy(p + 4, magic, sizeof(magic));
}

static const uint8_t *next_number(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *at = end - p > 4 ? memmem(p + 4, (size_t)(end - p) - 4, magic, 4) : NULL;
	return at ? at - 4 : NULL;
}

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

static void add_dataset(hid_t file, const char *name, unsigned int first, bool is_chunked)
{
	const hsize_t n = PER_DATASET, chunk = CHUNK;
	uint8_t *v = malloc((size_t)PER_DATASET * NUMBER);
	const hid_t space = H5Screate_simple(1, &n, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
	for (unsigned int i = 0; i < PER_DATASET; i++)
		put_number(v + i * NUMBER, first + i, 0);
	if (is_chunked)
		must(H5Pset_chunk(list, 1, &chunk) >= 0);
	const hid_t d =
		H5Dcreate2(file, name, H5T_STD_U64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
	must(H5Dwrite(d, H5T_STD_U64LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	H5Dclose(d);
	H5Pclose(list);
	H5Sclose(space);
	free(v);
}

static void add_attribute(hid_t file)
{
	uint8_t v[NUMBER];
	const hid_t space = H5Screate(H5S_SCALAR);
	const hid_t a = H5Acreate2(file, "version", H5T_STD_U64LE, space, H5P_DEFAULT, H5P_DEFAULT);
	put_number(v, LINKED_DATA, 0);
	must(H5Awrite(a, H5T_STD_U64LE, v) >= 0);
	H5Aclose(a);
	H5Sclose(space);
}

static size_t make(uint8_t bytes[FILE_MAX])
{
	const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
	must(H5Pset_fapl_core(list, 4096, false) >= 0);
	const hid_t file = H5Fcreate("linked", H5F_ACC_TRUNC, H5P_DEFAULT, list);
	add_attribute(file);
	add_dataset(file, "plain", 0, false);
	add_dataset(file, "chunks", PER_DATASET, true);
	must(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
	const ssize_t n = H5Fget_file_image(file, bytes, FILE_MAX);
	must(n > 0);
	H5Fclose(file);
	H5Pclose(list);
	return (size_t)n;
}

uint8_t *linked_file(uint16_t version, size_t *n)
{
	static uint8_t made[FILE_MAX];
	static size_t size;
	if (!size)
		size = make(made);
	*n = size + version / 4 % 2 * 16;
	uint8_t *bytes = calloc(1, *n);
	must(bytes);
	memcpy(bytes, made, size);
	for (const uint8_t *p = bytes; (p = next_number(p, bytes + size)); p += NUMBER) {
		uint8_t *at = bytes + (p - bytes);
		put_number(at, (unsigned int)(at[0] | at[1] << 8), version);
	}
	return bytes;
}

void linked_numbers_add(struct linked_numbers *all, const uint8_t *bytes, size_t n)
{
	for (const uint8_t *p = bytes; (p = next_number(p, bytes + n)); p += NUMBER) {
		const unsigned int place = (unsigned int)(p[0] | p[1] << 8);
		const uint16_t version = (uint16_t)(p[2] | p[3] << 8);
		if (place == LINKED_DATA) {
			all->attribute = version;
			continue;
		}
		all->is_mixed |= all->n++ && all->data != version;
		all->data = version;
	}
}
