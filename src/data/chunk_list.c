/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search in lists of chunks. */
#include <data/chunk_source.h>

uint64_t chunk_list_from(const struct chunk_list *chunks, uint64_t number)
{
	uint64_t low = 0, high = chunks->n;
	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;
		if (chunks->numbers[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t chunk_list_find(const struct chunk_list *chunks, uint64_t number)
{
	const uint64_t place = chunk_list_from(chunks, number);
	return place < chunks->n && chunks->numbers[place] == number ? place : chunks->n;
}
