/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search in lists of chunks. */
#include <data/chunk_source.h>

#include <base/search.h>

uint64_t chunk_list_from(const struct chunk_list *chunks, uint64_t number)
{
	return LOWER_BOUND(i, chunks->n, chunks->numbers[i] < number);
}

uint64_t chunk_list_find(const struct chunk_list *chunks, uint64_t number)
{
	const uint64_t place = chunk_list_from(chunks, number);
	return place < chunks->n && chunks->numbers[place] == number ? place : chunks->n;
}
