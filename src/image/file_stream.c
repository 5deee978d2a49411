/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See file_stream.h. The slots of a file are numbered in file order, across extents. A chunk with a
 * heap has two numbers: one in the raw data and one in the heaps.
 */
#include "file_stream.h"

#include <unistd.h>

#include <base/search.h>

enum {
	/* Slots that a read requests at once, unless the source joins more loads. When half of them
	 * have been read, it requests more. */
	BATCH = 128,
	/* A program that copies a file begins with a read of so many bytes at offset 0, and libhdf5
	 * with fewer. So does file(1), which ends soon. */
	COPY_READ = 128 << 10,
	/* Full requests that are ahead of a program that reads joined loads in order, however fast
	 * the store is: one in flight, and one that is being read. */
	JOINED_BATCHES = 2,
	FIRST_SLOTS = 16, /* of a dataset; later ones are requested without prefetch_few() */
	FIRST_AHEAD = 2,  /* slots for each one that was read, */
	FIRST_SPARE = 4,  /* and these... */
	FIRST_AHEAD_MAX = 12 << 20, /* ...but at most so many bytes */
	WHOLE_DATASETS = 2, /* a program that has read so many completely reads the next one, too */
	SMALL_DATASETS = 16,
	SMALL_COST = 16 << 10, /* bytes of the only chunk of a small dataset */
	PART_MIN = 1 << 20,    /* bytes that a program has read in order in one dataset */
};

struct image_stream *image_stream_new(struct image *img)
{
	struct image_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (pthread_mutex_init(&s->lock, NULL)) {
		free(s);
		return NULL;
	}
	s->image = img;
	s->cache = cache_stream_new(img->owner);
	return s;
}

void image_stream_free(struct image_stream *s)
{
	if (!s)
		return;
	cache_stream_free(s->cache);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* Returns the number of the first slot that ends after offset. */
static uint64_t slot_at(const struct image *img, uint64_t offset)
{
	const uint32_t i = extent_find(img, offset);
	if (i == img->nextents)
		return img->nslots;
	const struct extent *x = &img->extents[i];
	if (!extent_has_slots(x->kind) || offset <= x->start)
		return x->first_slot;
	return x->first_slot + extent_slot(img, x, offset);
}

/* Returns the slots that bytes [start, end) of the file touch. */
static struct slot_range slots_of(const struct image *img, uint64_t start, uint64_t end)
{
	const uint32_t i = extent_find(img, end - 1);
	const bool in_slot = i < img->nextents && extent_has_slots(img->extents[i].kind) &&
			     end > img->extents[i].start;
	return (struct slot_range){slot_at(img, start), slot_at(img, end - 1) + in_slot};
}

/* Returns the offset in the file of slot `slot` of extent x. */
static uint64_t offset_of(const struct image *img, const struct extent *x, uint64_t slot)
{
	const struct image_dataset *d = &img->datasets[x->dataset];
	return x->start + (x->kind == EXTENT_RAW ? slot * d->stride : dataset_window(d, slot));
}

static uint64_t end_slot(const struct image *img, const struct extent *x)
{
	return x->first_slot + (extent_has_slots(x->kind) ? img->datasets[x->dataset].nslots : 0);
}

/* Returns the index of the extent with slot number `slot`, or nextents if there is none. */
static uint32_t find_slot(const struct image *img, uint64_t slot)
{
	return LOWER_BOUND(i, img->nextents, end_slot(img, &img->extents[i]) <= slot);
}

/* Requests slots [first, last) from the cache. Returns the first one that the cache did not accept.
 */
static uint64_t request(struct image *img, struct image_stream *s, uint64_t first, uint64_t last)
{
	while (first < last) {
		const uint32_t i = find_slot(img, first);
		if (i == img->nextents)
			return last;
		const struct extent *x = &img->extents[i];
		const struct image_dataset *d = &img->datasets[x->dataset];
		const uint64_t n = min_u64(last, x->first_slot + d->nslots) - first;
		const uint64_t accepted =
			d->unknown ? n
				   : cache_advise(img->owner, s ? s->cache : NULL, x->dataset,
						  first - x->first_slot, n);
		first += accepted;
		if (accepted < n)
			break;
	}
	return first;
}

/* Returns the dataset of a slot, or NULL if there is no such slot. */
static const struct image_dataset *dataset_at(const struct image *img, uint64_t slot)
{
	const uint32_t i = find_slot(img, slot);
	return i < img->nextents ? &img->datasets[img->extents[i].dataset] : NULL;
}

void stream_plan_read(struct image *img, struct image_stream *s, struct stream_plan *plan,
		      uint64_t at, uint64_t end)
{
	if (at < plan->next)
		return;
	plan->next = end;
	const struct slot_range range = slots_of(img, at, end);
	const uint64_t first = range.first, last = range.last;
	if (last <= first + 1)
		return;
	const uint64_t batch = max_u64(dataset_at(img, first)->joined, BATCH);
	const uint64_t requested = request(img, s, first, min_u64(last, first + batch));
	if (requested == last)
		return;
	const uint64_t next = first + max_u64((requested - first) / 2, 1);
	const uint32_t i = find_slot(img, next);
	if (i < img->nextents)
		plan->next =
			max_u64(offset_of(img, &img->extents[i], next - img->extents[i].first_slot),
				at + 1);
}

/* ---- sequential reads ---- */

/* A step of a program that reads sequentially. */
struct order_step {
	struct slot_order *slots; /* under the lock */
	uint64_t steps;		  /* slots by which the last read has advanced */
	bool begins;		  /* they are all that the program has read */
	uint64_t read;		  /* the slot that it has reached */
	uint64_t run;		  /* slots that it has read in order */
	uint64_t end;		  /* slots from this one on are not requested */
};

/* Moves the end of a batch back to a multiple of the loads that one request takes, so that batches
 * do not share requests. */
static uint64_t align(const struct image *img, uint64_t last)
{
	const uint32_t i = find_slot(img, last);
	if (i == img->nextents)
		return last;
	const struct extent *x = &img->extents[i];
	return last - (last - x->first_slot) % max_u64(img->datasets[x->dataset].joined, 1);
}

/* Requests the slots from the one that the program has reached. */
static void prefetch_slots(struct image_stream *s, const struct order_step *step)
{
	const uint64_t read = step->read;
	struct image *img = s->image;
	const struct image_dataset *d = dataset_at(img, read);
	const struct cache_dataset next = {.cost = d ? d->cost : 0,
					   .joined = d ? d->joined : 1,
					   .read_ahead = atomic_load(&img->kernel_ahead)};
	/* Neighbours in the file may lie far apart in a shard: a batch joins the more of them the
	 * more it has. */
	const uint64_t least =
		next.joined > 1 ? min_u64(JOINED_BATCHES * next.joined, FIRST_AHEAD * step->run)
				: 0;
	const uint32_t depth = (uint32_t)max_u64(
		cache_stream_depth(s->cache, step->steps, step->begins, &next), least);
	pthread_mutex_lock(&s->lock);
	const uint64_t first = max_u64(step->slots->prefetched, read);
	uint64_t last = max_u64(min_u64(read + depth, step->end), first);
	if (last - first < prefetch_refill(next.joined, depth) && last < step->end)
		last = first;
	else if (last < step->end)
		last = max_u64(align(img, last), first);
	step->slots->prefetched = last;
	pthread_mutex_unlock(&s->lock);
	const uint64_t requested = request(img, s, first, last);
	if (requested == last)
		return;
	pthread_mutex_lock(&s->lock);
	step->slots->prefetched = min_u64(step->slots->prefetched, requested);
	pthread_mutex_unlock(&s->lock);
}

/* The program reads slots near the beginning of a dataset, and will probably read all slots before
 * `end`. It has read `read` slots without a gap, or as many bytes. Without this, nothing would be
 * requested until it has read two slots of the dataset, and then fewer. */
static void prefetch_few(struct image_stream *s, struct slot_range touched, uint64_t read,
			 uint64_t end)
{
	struct image *img = s->image;
	const uint64_t most = FIRST_AHEAD_MAX / max_u64(dataset_at(img, touched.first)->cost, 1);
	const uint64_t n = min_u64(FIRST_AHEAD * max_u64(read, 1) + FIRST_SPARE, most);
	request(img, s, touched.last, min_u64(touched.last + n, end));
}

/* Called if the program may read sequentially. Requests a few slots after the first dataset, which
 * end before offset `end`. */
static void prefetch_trial(struct image_stream *s, uint64_t end)
{
	struct image *img = s->image;
	const uint64_t first = slot_at(img, img->data_end), last = slot_at(img, end);
	request(img, s, first, min_u64(last, first + BATCH));
}

/* ---- datasets that are read completely ---- */

static bool is_small(const struct image *img, const struct extent *x)
{
	const struct image_dataset *d = &img->datasets[x->dataset];
	return x->kind == EXTENT_RAW && d->nslots == 1 && d->cost <= SMALL_COST;
}

/* Called if the program reads a small dataset. Requests all small datasets of the file, if they are
 * few. These are usually coordinates, and programs read them one after the other. */
static void prefetch_small(struct image_stream *s)
{
	struct image *img = s->image;
	uint64_t slots[SMALL_DATASETS];
	size_t n = 0;
	for (uint32_t i = 0; i < img->nextents; i++) {
		if (!is_small(img, &img->extents[i]))
			continue;
		if (n == SMALL_DATASETS)
			return;
		slots[n++] = img->extents[i].first_slot;
	}
	for (size_t i = 0; i < n; i++)
		request(img, s, slots[i], slots[i] + 1);
}

/* Returns the end of the dataset that has the last slot of a range. */
static uint64_t dataset_end(const struct image *img, struct slot_range r)
{
	const struct extent *x = &img->extents[find_slot(img, r.last - 1)];
	return x->first_slot + img->datasets[x->dataset].nslots;
}

/* Returns the number of datasets that a range consists of, or 0 if it ends or begins within one. */
static uint32_t whole_datasets(const struct image *img, struct slot_range r)
{
	if (r.first >= r.last)
		return 0;
	const uint32_t first = find_slot(img, r.first), last = find_slot(img, r.last - 1);
	const bool whole =
		img->extents[first].first_slot == r.first && dataset_end(img, r) == r.last;
	return whole ? last - first + 1 : 0;
}

/* Records that the program reads these slots. Returns true if some of them are new and the program
 * probably reads the slots after them, too: it copies the file, or it has read the datasets before
 * this one completely, and this one from the beginning. */
static bool follow_run_locked(struct image_stream *s, struct slot_range read, bool copies)
{
	struct slot_range *run = &s->run;
	const bool joins = read.first <= run->last && read.last >= run->first;
	const uint64_t reached = joins ? run->last : read.first;
	if (!joins) {
		const uint32_t n = whole_datasets(s->image, *run);
		s->whole = n ? s->whole + n : 0;
		s->continues = false;
		*run = read;
	}
	run->last = max_u64(run->last, read.last);
	const uint64_t start = s->image->extents[find_slot(s->image, read.last - 1)].first_slot;
	const struct slot_range before = {run->first, start};
	s->continues |= copies || (reached <= start && run->first <= start &&
				   s->whole + whole_datasets(s->image, before) >= WHOLE_DATASETS);
	return s->continues && read.last > reached && read.last <= start + FIRST_SLOTS;
}

/* Returns how much the program has read without a gap, in slots. A copy has also read the
 * metadata. */
static uint64_t run_length_locked(const struct image_stream *s, struct slot_range read)
{
	const uint64_t slots = s->whole + s->run.last - s->run.first;
	const uint64_t cost = max_u64(dataset_at(s->image, read.first)->cost, 1);
	return s->order.running ? max_u64(s->order.end / cost, slots) : slots;
}

/* ---- reads in order ---- */

/* Records that the program reads bytes [start, end). Returns true, and sets *step, if the program
 * reads one dataset in order whose loads are joined, and has read enough of it. Kernel threads
 * serve such reads side by side, so a loop over chunks would be recognised late, and at some times
 * with a stride. The chunks after the run are prefetched; if the run before this one was of the
 * same dataset and long enough, this one probably ends after as many bytes. */
static bool follow_part_locked(struct image_stream *s, uint64_t start, uint64_t end,
			       struct order_step *step)
{
	const struct image *img = s->image;
	struct dataset_order *p = &s->part;
	const uint32_t i = extent_find(img, end - 1);
	const struct extent *x = i < img->nextents ? &img->extents[i] : NULL;
	if (!x || x->kind != EXTENT_RAW || end <= x->start || img->datasets[x->dataset].joined <= 1)
		return false;
	if (i != p->extent)
		*p = (struct dataset_order){.extent = i};
	const struct sequential before = p->run;
	const uint64_t n = sequential_run(&p->run, max_u64(start, x->start), end);
	if (p->run.start != before.start) {
		const uint64_t row = before.running ? before.end - before.start : 0;
		p->row = row < PART_MIN ? 0 : row;
		p->slots = (struct slot_order){0};
	}
	if (n < PART_MIN)
		return false;
	*step = (struct order_step){
		.slots = &p->slots,
		.begins = p->slots.read == 0,
		.read = slot_at(img, p->run.end),
		.run = slot_at(img, p->run.end) - slot_at(img, p->run.start),
		.end = x->first_slot + img->datasets[x->dataset].nslots,
	};
	if (n <= p->row)
		step->end = min_u64(step->end, slot_at(img, p->run.start + p->row));
	const uint64_t from = step->begins ? slot_at(img, p->run.start) : p->slots.read;
	step->steps = step->read > from ? step->read - from : 0;
	p->slots.read = max_u64(p->slots.read, step->read);
	return true;
}

void stream_read(struct image_stream *s, uint64_t offset, uint64_t n, uint64_t before,
		 struct stream_plan *plan)
{
	if (!s || !s->cache || s->image->nslots == 0)
		return;
	struct image *img = s->image;
	struct slot_range touched = slots_of(img, offset, offset + n);
	const struct sequential_file file = {.data = img->data_start, .second = img->data_end};
	pthread_mutex_lock(&s->lock);
	/* A program that copies a file skips its holes. Its reads still count as sequential. */
	struct sequential *o = &s->order;
	if (o->running && offset > o->end &&
	    image_seek(s->image, s->image->base + o->end, SEEK_DATA) >=
		    (int64_t)(s->image->base + offset))
		sequential_skip(o, offset);
	const bool in_order = sequential_read(&s->order, &file, offset, offset + n);
	struct order_step step = {
		.slots = &s->slots,
		.read = in_order ? slot_at(img, s->order.end) : 0,
		.end = img->nslots,
	};
	step.run = step.read;
	step.steps = step.read > s->slots.read ? step.read - s->slots.read : 0;
	struct order_step part = {0};
	const bool follows = !in_order && follow_part_locked(s, offset, offset + n, &part);
	if (follows && touched.last <= s->part.slots.prefetched)
		plan->next = offset + n;
	s->copies |= offset == 0 && before + n >= COPY_READ;
	const bool copies = s->copies && s->order.running && s->order.end > file.data;
	s->copies &= !copies;
	if (copies)
		touched = slots_of(img, file.data, s->order.end);
	const bool touches = touched.first < touched.last;
	const bool continues = touches && follow_run_locked(s, touched, copies);
	const uint64_t length = continues ? run_length_locked(s, touched) : 0;
	const bool small =
		touches && !s->small && is_small(img, &img->extents[find_slot(img, touched.first)]);
	s->small |= small;
	const uint64_t trial = s->tried ? 0 : sequential_trial(&s->order, &file);
	s->tried |= trial > 0;
	if (!in_order)
		s->slots.prefetched = 0;
	s->slots.read = step.read;
	pthread_mutex_unlock(&s->lock);
	cache_stream_in_order(s->cache, follows);
	if (small)
		prefetch_small(s);
	if (in_order && step.steps > 0)
		prefetch_slots(s, &step);
	else if (part.steps > 0)
		prefetch_slots(s, &part);
	else if (continues)
		prefetch_few(s, touched, length, copies ? img->nslots : dataset_end(img, touched));
	else if (trial > 0)
		prefetch_trial(s, img->data_end + trial);
}
