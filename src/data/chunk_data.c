/* SPDX-License-Identifier: Apache-2.0 */
#include <data/chunk_data.h>

#include <string.h>

#include <data/shuffle.h>

/* Copies repetitions of an element, of which byte `first` comes first. */
static void read_run(const struct chunk_data *d, uint64_t first, uint8_t *out, size_t n)
{
	if (elems_end(&d->elems) == 0) {
		memset(out, 0, n);
		return;
	}
	const size_t tail = (size_t)min_u64(d->run - first, n);
	const size_t head = (size_t)min_u64(first, n - tail);
	elems_read(&d->elems, first, out, tail);
	elems_read(&d->elems, 0, out + tail, head);
	elems_repeat(out, tail + head, n);
}

void chunk_data_read(const struct chunk_data *d, uint64_t at, void *out, size_t n)
{
	if (d->shuffled)
		unshuffle_range(out, d->elems.fixed.data, d->elems.fixed.len, d->shuffled,
				(size_t)at, n);
	else if (d->run)
		read_run(d, at % d->run, out, n);
	else
		elems_read(&d->elems, at, out, n);
}

void chunk_data_read_heap(const struct chunk_data *d, uint64_t at, void *out, size_t n)
{
	elems_read(&(struct elems){.fixed = d->elems.heap}, at, out, n);
}

struct chunk_data chunk_data_run(const struct elems *element, uint32_t size)
{
	struct chunk_data d = {.run = size};
	if (element)
		d.elems = *element;
	d.elems.heap = (struct bytes){0};
	d.elems.is_borrowed = true;
	return d;
}

size_t chunk_data_memory(const struct chunk_data *d)
{
	return d->elems.is_borrowed ? 0 : d->elems.fixed.cap + d->elems.heap.cap;
}

void chunk_data_release(struct chunk_data *d)
{
	if (!d)
		return;
	elems_release(&d->elems);
	*d = (struct chunk_data){0};
}
