/* SPDX-License-Identifier: Apache-2.0 */
/* The HDF5 file to which a domain refers: see links.h. Each of its numbers tells its version and
 * its place, so that they can be found in any bytes, also in those of the file that a mount shows.
 */
#ifndef SIM_LINKED_FILE_H
#define SIM_LINKED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers: an attribute, which a domain has itself, and two datasets. */
enum { LINKED_DATA = 2 * 1024 };

/* The bytes of a version, from 1. Most versions have as many as the one before. Heap. */
uint8_t *linked_file(uint16_t version, size_t *n);

struct linked_numbers {
	uint16_t attribute, data; /* their versions; 0: there are none */
	unsigned int n;		  /* numbers of data */
	bool is_mixed;		  /* the data have several versions */
};
/* Adds the numbers in some bytes of a file. */
void linked_numbers_add(struct linked_numbers *all, const uint8_t *bytes, size_t n);

#endif
