/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums of a spool: see sums.h.
 *
 * Invariants, also if the daemon is killed at any call:
 *  1. An entry of the file is that of the frame in the spool, or unknown, or zero.
 *  2. An entry is zero only if the map does not say that something of the frame is written.
 *  3. In memory, `crc` and `length` are those of the frame in the spool, and the bytes behind
 *     `length` are zero; or the frame is `lost`, or a change of it is in progress.
 *  4. If a frame is not `lost`, the file has its entry; or one that is unknown, which a change in
 *     progress has put there.
 */
#include "sums.h"

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/checksum.h>
#include <base/mem.h>

#include <journal/private_file.h>

enum {
	BLOCK = 512, /* frames */
	BLOCKS = SUMS_MAX / BLOCK,
	TABLE = 8, /* blocks at first */
	NAME = 32,
	CHUNK = 16 << 10,
};

static void name_of(const struct sums *s, char name[NAME])
{
	snprintf(name, NAME, "sums.%" PRIu32, s->generation);
}

void sums_init(struct sums *s, int dir, uint32_t generation, struct budget *budget)
{
	*s = (struct sums){.dir = dir,
			   .fd = -1,
			   .generation = generation,
			   .charge = {.budget = budget, .use = BUDGET_DRAFTS}};
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->ended, NULL);
}

void sums_release(struct sums *s)
{
	for (size_t b = 0; b < s->n_blocks; b++)
		free(s->blocks[b]);
	free(s->blocks);
	budget_set(&s->charge, 0, NULL);
	cleanup_close(&s->fd);
	pthread_cond_destroy(&s->ended);
	pthread_mutex_destroy(&s->lock);
}

/* ---- memory ---- */

static int charge_locked(struct sums *s, size_t more, struct err *err)
{
	return budget_set(&s->charge, s->charge.bytes + more, err);
}

static int grow_table_locked(struct sums *s, size_t n, struct err *err)
{
	if (n <= s->n_blocks)
		return 0;
	const size_t size = sizeof(*s->blocks);
	const size_t more = (size_t)min_u64(max_u64(max_u64(2 * s->n_blocks, n), TABLE), BLOCKS);
	int rc = charge_locked(s, (more - s->n_blocks) * size, err);
	if (rc)
		return rc;
	struct sum **blocks = realloc(s->blocks, more * size);
	if (!blocks) {
		budget_set(&s->charge, s->charge.bytes - (more - s->n_blocks) * size, NULL);
		return err_no_memory(err);
	}
	memset(blocks + s->n_blocks, 0, (more - s->n_blocks) * size);
	s->blocks = blocks;
	s->n_blocks = more;
	return 0;
}

static int make_block_locked(struct sums *s, size_t b, struct err *err)
{
	int rc = grow_table_locked(s, b + 1, err);
	if (rc || s->blocks[b])
		return rc;
	rc = charge_locked(s, BLOCK * sizeof(struct sum), err);
	if (rc)
		return rc;
	s->blocks[b] = calloc(BLOCK, sizeof(struct sum));
	if (s->blocks[b])
		return 0;
	budget_set(&s->charge, s->charge.bytes - BLOCK * sizeof(struct sum), NULL);
	return err_no_memory(err);
}

/* Returns NULL if there is none. */
static struct sum *find_block_locked(const struct sums *s, size_t b)
{
	return b < s->n_blocks ? s->blocks[b] : NULL;
}

/* ---- the file ---- */

/* Frames [first, first + n), in one block. */
struct part {
	struct sum *v; /* NULL if there was no memory */
	size_t first, n;
};

static int write_entries(const struct sums *s, const struct part *p)
{
	uint8_t bytes[BLOCK * SUMS_ENTRY];
	for (size_t i = 0; i < p->n; i++) {
		const struct sum *f = p->v ? &p->v[i] : NULL;
		const bool unknown = !f || f->lost || f->marked;
		const struct sum_entry entry = {.crc = unknown ? 0 : f->crc,
						.length = unknown ? 0 : f->length,
						.unknown = unknown};
		sum_entry_encode(s->generation, (uint32_t)(p->first + i), &entry,
				 bytes + i * SUMS_ENTRY);
	}
	return file_write(s->fd, SUMS_HEADER + (uint64_t)p->first * SUMS_ENTRY, bytes,
			  p->n * SUMS_ENTRY);
}

/* Writes the entries of a part. If that fails, its frames are lost. */
static int put_part(const struct sums *s, const struct part *p)
{
	const int rc = write_entries(s, p);
	if (rc == 0)
		return 0;
	for (size_t i = 0; p->v && i < p->n; i++)
		p->v[i].lost = true;
	/* A part of the entries may have been written, or half of one. */
	write_entries(s, p);
	return rc;
}

static int put_header(const struct sums *s, bool final)
{
	uint8_t bytes[SUMS_HEADER];
	sums_header_encode(final, bytes);
	return file_write(s->fd, 0, bytes, sizeof(bytes));
}

int sums_create(struct sums *s, struct err *err)
{
	char name[NAME];
	name_of(s, name);
	s->fd = file_open(s->dir, name, O_RDWR | O_CREAT | O_TRUNC);
	int rc = s->fd < 0 ? s->fd : put_header(s, false);
	return rc ? err_errno(err, rc, "%s", name) : 0;
}

void sums_remove(const struct sums *s)
{
	char name[NAME];
	name_of(s, name);
	unlinkat(s->dir, name, 0);
}

/* ---- the spool ---- */

/* Computes the CRC of n bytes. What is behind the end of the spool is zero. */
static int read_crc(int spool, uint64_t offset, size_t n, uint32_t *crc)
{
	uint8_t buf[CHUNK];
	size_t got = 0;
	int rc = 0;
	for (*crc = 0; rc == 0 && n > 0; offset += got, n -= got) {
		rc = file_read(spool, offset, buf, (size_t)min_u64(n, CHUNK), &got);
		*crc = checksum_crc32c(buf, got, *crc);
		if (got == 0)
			break;
	}
	*crc = checksum_crc32c_zeros(n, *crc);
	return rc;
}

static int read_frame(struct sum *f, size_t frame, int spool)
{
	uint32_t crc;
	const int rc = read_crc(spool, (uint64_t)frame * SUMS_FRAME, SUMS_FRAME, &crc);
	if (rc == 0)
		*f = (struct sum){.crc = crc, .length = SUMS_FRAME};
	return rc;
}

/* ---- changes ---- */

/* n bytes of a frame, from `at` on. */
struct span {
	uint32_t at, n;
};

/* Returns which bytes of a frame a change affects. Bytes that are zero already, and need not be
 * part of the draft, do not count. */
static struct span find_span(const struct sums_change *c, size_t frame, const struct sum *f)
{
	const uint64_t begin = (uint64_t)frame * SUMS_FRAME;
	const uint64_t known = begin + (f->lost ? SUMS_FRAME : f->length);
	const uint64_t limit = min_u64(begin + SUMS_FRAME, max_u64(c->need, known));
	const uint64_t start = max_u64(c->offset, begin), end = min_u64(c->end, limit);
	return (struct span){(uint32_t)(start - begin), start < end ? (uint32_t)(end - start) : 0};
}

static bool replaces(const struct sum *f, struct span x)
{
	return x.n && (f->lost || x.at < f->length);
}

static bool replaces_all(const struct sum *f, struct span x)
{
	return x.at == 0 && x.n >= f->length;
}

/* Only the first and the last frame of a change can be replaced in part. */
static uint32_t *find_old(struct sums_change *c, size_t frame)
{
	return &c->old[frame != c->first];
}

static void find_frames_locked(const struct sums *s, struct sums_change *c)
{
	const uint64_t used = max_u64(div_up_u64(c->need, SUMS_FRAME), s->n);
	c->first = (size_t)min_u64(c->offset / SUMS_FRAME, SUMS_MAX);
	c->last = (size_t)min_u64(min_u64(div_up_u64(c->end, SUMS_FRAME), used), SUMS_MAX);
	c->last = (size_t)max_u64(c->first, c->last);
}

static bool must_wait_locked(const struct sums *s, const struct sums_change *c)
{
	for (const struct sums_change *o = s->changes; o; o = o->next)
		if (c->first < o->last && o->first < c->last)
			return true;
	return false;
}

static void make_blocks_locked(struct sums *s, const struct sums_change *c)
{
	const uint64_t last = min_u64(c->last, div_up_u64(c->need, SUMS_FRAME));
	for (size_t b = c->first / BLOCK; b * BLOCK < last && !s->full; b++)
		s->full = make_block_locked(s, b, NULL) != 0;
}

/* Moves to the next part of a change. p is zero at first. */
static bool next_part(struct sums *s, const struct sums_change *c, struct part *p)
{
	p->first = p->n ? p->first + p->n : c->first;
	if (p->first >= c->last)
		return false;
	const size_t b = p->first / BLOCK;
	p->n = (size_t)min_u64(c->last, (b + 1) * BLOCK) - p->first;
	pthread_mutex_lock(&s->lock);
	struct sum *block = find_block_locked(s, b);
	pthread_mutex_unlock(&s->lock);
	p->v = block ? block + p->first % BLOCK : NULL;
	return true;
}

/* Reads what will be replaced, and says in the file that it changes. */
static int begin_part(const struct sums *s, int spool, struct sums_change *c, const struct part *p)
{
	bool marks = !p->v && p->first < div_up_u64(c->need, SUMS_FRAME);
	int rc = 0;
	for (size_t i = 0; rc == 0 && p->v && i < p->n; i++) {
		struct sum *f = &p->v[i];
		const size_t frame = p->first + i;
		const struct span x = find_span(c, frame, f);
		if (!replaces(f, x))
			continue;
		f->marked = marks = true;
		if (!f->lost && !replaces_all(f, x))
			rc = read_crc(spool, (uint64_t)frame * SUMS_FRAME + x.at,
				      (size_t)min_u64(x.n, f->length - x.at), find_old(c, frame));
	}
	return rc == 0 && marks ? put_part(s, p) : rc;
}

int sums_begin(struct sums *s, int spool, struct sums_change *c)
{
	struct part p = {.n = 0};
	int rc = 0;
	pthread_mutex_lock(&s->lock);
	find_frames_locked(s, c);
	while (must_wait_locked(s, c))
		pthread_cond_wait(&s->ended, &s->lock);
	c->next = s->changes;
	s->changes = c;
	s->n = (size_t)max_u64(s->n, c->last);
	make_blocks_locked(s, c);
	pthread_mutex_unlock(&s->lock);
	while (rc == 0 && next_part(s, c, &p))
		rc = begin_part(s, spool, c, &p);
	if (rc)
		sums_end(s, spool, c, NULL, SUMS_UNCHANGED);
	return rc;
}

static uint32_t add_bytes(const uint8_t *bytes, size_t n, uint32_t crc)
{
	return bytes ? checksum_crc32c(bytes, n, crc) : checksum_crc32c_zeros(n, crc);
}

/* Sets the checksum of a frame after a change. `bytes` are those of the span, or NULL for zeros.
 * `old` is the CRC of the bytes that they replace, unless they replace all. */
static void change_sum(struct sum *f, struct span x, const uint8_t *bytes, uint32_t old)
{
	const uint32_t length = f->length, end = x.at + x.n;
	const uint32_t replaced = x.at < length ? (uint32_t)min_u64(x.n, length - x.at) : 0;
	uint32_t crc = f->crc;
	if (replaces_all(f, x)) {
		*f = (struct sum){.crc = add_bytes(bytes, x.n, 0), .length = x.n};
		return;
	}
	if (replaced)
		crc ^= checksum_crc32c_shift(old ^ add_bytes(bytes, replaced, 0),
					     length - x.at - replaced);
	else
		crc = checksum_crc32c_zeros(x.at - length, crc);
	if (end > length)
		crc = add_bytes(bytes ? bytes + replaced : NULL, x.n - replaced, crc);
	*f = (struct sum){.crc = crc, .length = (uint32_t)max_u64(end, length)};
}

static int first_error(int first, int second)
{
	return first ? first : second;
}

static int end_part(const struct sums *s, int spool, struct sums_change *c, const struct part *p,
		    const uint8_t *buf, enum sums_outcome outcome)
{
	bool put = false;
	int rc = 0;
	for (size_t i = 0; i < p->n; i++) {
		struct sum *f = &p->v[i];
		const size_t frame = p->first + i;
		const struct span x = find_span(c, frame, f);
		const uint64_t at = (uint64_t)frame * SUMS_FRAME + x.at - c->offset;
		put |= outcome == SUMS_CHANGED || (outcome == SUMS_UNCHANGED && f->marked);
		f->marked = false;
		if (x.n && outcome == SUMS_FAILED)
			f->lost = true;
		else if (x.n && outcome == SUMS_CHANGED && f->lost)
			rc = first_error(rc, read_frame(f, frame, spool));
		else if (x.n && outcome == SUMS_CHANGED)
			change_sum(f, x, buf ? buf + at : NULL, *find_old(c, frame));
	}
	return put ? first_error(rc, put_part(s, p)) : rc;
}

int sums_end(struct sums *s, int spool, struct sums_change *c, const void *buf,
	     enum sums_outcome outcome)
{
	struct part p = {.n = 0};
	int rc = 0;
	while (next_part(s, c, &p))
		if (p.v)
			rc = first_error(rc, end_part(s, spool, c, &p, buf, outcome));
	pthread_mutex_lock(&s->lock);
	struct sums_change **at = &s->changes;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	pthread_cond_broadcast(&s->ended);
	pthread_mutex_unlock(&s->lock);
	return outcome == SUMS_CHANGED ? rc : 0;
}

/* ---- changes while no program writes ---- */

/* Finds the block b of entries. Returns false if there is none. */
static bool find_part(const struct sums *s, size_t b, struct part *p)
{
	*p = (struct part){.v = find_block_locked(s, b), .first = b * BLOCK};
	p->n = (size_t)min_u64(s->n - min_u64(s->n, p->first), BLOCK);
	return p->v && p->n > 0;
}

int sums_cut(struct sums *s, uint64_t offset)
{
	const uint64_t n = div_up_u64(offset, SUMS_FRAME);
	struct part p;
	if (n >= s->n)
		return 0;
	if (ftruncate(s->fd, (off_t)(SUMS_HEADER + n * SUMS_ENTRY)))
		return -errno;
	for (size_t b = (size_t)n / BLOCK; b < s->n_blocks; b++)
		for (size_t i = 0; find_part(s, b, &p) && i < p.n; i++)
			if (p.first + i >= n)
				p.v[i].lost = true;
	return 0;
}

void sums_forget(struct sums *s, uint64_t offset)
{
	const uint64_t n = div_up_u64(offset, SUMS_FRAME);
	struct part p;
	if (n >= s->n)
		return;
	for (size_t b = (size_t)n / BLOCK; b < s->n_blocks; b++)
		for (size_t i = 0; find_part(s, b, &p) && i < p.n; i++)
			if (p.first + i >= n)
				p.v[i] = (struct sum){.crc = 0};
	s->n = (size_t)n;
}

/* Computes the checksums of a block that are lost. */
static int find_lost(const struct sums *s, int spool, const struct part *p)
{
	bool put = false;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < p->n; i++)
		if (p->v[i].lost) {
			rc = read_frame(&p->v[i], p->first + i, spool);
			put = true;
		}
	return rc == 0 && put ? put_part(s, p) : rc;
}

int sums_save(struct sums *s, int spool, bool final)
{
	struct part p;
	int rc = 0;
	for (size_t b = 0; rc == 0 && b < s->n_blocks; b++)
		if (find_part(s, b, &p))
			rc = find_lost(s, spool, &p);
	if (rc || !final)
		return rc;
	/* The entries become durable first, because the header says that they are true. */
	if (fsync(s->fd))
		return -errno;
	rc = put_header(s, true);
	if (rc) {
		put_header(s, false);
		return rc;
	}
	return fsync(s->fd) || fsync(s->dir) ? -errno : 0;
}

/* ---- a draft of an earlier process ---- */

static int load_block(struct sums *s, int fd, size_t b, struct err *err)
{
	uint8_t bytes[BLOCK * SUMS_ENTRY] = {0};
	const uint64_t at = SUMS_HEADER + (uint64_t)b * sizeof(bytes);
	size_t got;
	int rc = make_block_locked(s, b, err);
	if (rc)
		return rc;
	rc = file_read(fd, at, bytes, sizeof(bytes), &got);
	for (size_t i = 0; rc == 0 && i < BLOCK; i++) {
		struct sum_entry entry;
		struct sum *f = &s->blocks[b][i];
		f->damaged = sum_entry_decode(s->generation, (uint32_t)(b * BLOCK + i),
					      bytes + i * SUMS_ENTRY, &entry) != 0;
		f->crc = entry.crc;
		f->length = f->damaged ? 0 : entry.length;
		f->lost = entry.unknown;
	}
	return rc ? err_errno(err, rc, "cannot read sums.%" PRIu32, s->generation) : 0;
}

static int load(struct sums *s, int fd, bool same_boot, struct err *err)
{
	uint8_t header[SUMS_HEADER];
	struct stat st;
	size_t n;
	bool final = false;
	int rc = fstat(fd, &st) ? -errno : file_read(fd, 0, header, sizeof(header), &n);
	if (rc)
		return err_errno(err, rc, "cannot read sums.%" PRIu32, s->generation);
	if (sums_header_decode(header, n, &final) ||
	    st.st_size > SUMS_HEADER + (off_t)SUMS_MAX * SUMS_ENTRY)
		return err_set(err, -EBADMSG, "sums.%" PRIu32 " is damaged", s->generation);
	s->loaded = final || same_boot;
	s->n = (size_t)div_up_u64((uint64_t)st.st_size - SUMS_HEADER, SUMS_ENTRY);
	for (size_t b = 0; rc == 0 && s->loaded && b * BLOCK < s->n; b++)
		rc = load_block(s, fd, b, err);
	return rc;
}

int sums_load(struct sums *s, bool same_boot, struct err *err)
{
	char name[NAME];
	name_of(s, name);
	auto_close int fd = file_open(s->dir, name, O_RDONLY);
	int rc = fd == -ENOENT ? err_set(err, -EBADMSG, "%s is missing", name)
		 : fd < 0      ? err_errno(err, fd, "cannot open %s", name)
			       : load(s, fd, same_boot, err);
	/* After a crash of the machine, a file may be torn that did not have to be durable. */
	return rc == -EBADMSG && !same_boot ? 0 : rc;
}

static int report_missing(const struct sums *s, size_t frame, const char *what, struct err *err)
{
	return err_set(err, -EBADMSG,
		       "sums.%" PRIu32 " is damaged: it has %s for the bytes of spool.%" PRIu32
		       " at offset %" PRIu64,
		       s->generation, what, s->generation, (uint64_t)frame * SUMS_FRAME);
}

/* Returns what is known of a frame. */
static struct sum find_sum(struct sums *s, size_t frame)
{
	struct sum sum = {.crc = 0};
	pthread_mutex_lock(&s->lock);
	const struct sum *f = find_block_locked(s, frame / BLOCK);
	if (f)
		sum = f[frame % BLOCK];
	pthread_mutex_unlock(&s->lock);
	return sum;
}

/* Compares a frame, of which the bytes before `end` are part of the draft. */
static int check_frame(struct sums *s, int spool, size_t frame, uint64_t end, struct err *err)
{
	const uint64_t begin = (uint64_t)frame * SUMS_FRAME;
	const struct sum sum = find_sum(s, frame);
	uint32_t crc;
	if (sum.damaged)
		return report_missing(s, frame, "no valid entry", err);
	if (sum.lost)
		return 0;
	if (begin + sum.length < min_u64(end, begin + SUMS_FRAME))
		return report_missing(s, frame, "no checksum", err);
	int rc = sum.checked ? 0 : read_crc(spool, begin, sum.length, &crc);
	if (rc)
		return err_errno(err, rc, "cannot read the spool");
	if (!sum.checked && crc != sum.crc)
		return err_set(err, -EBADMSG,
			       "spool.%" PRIu32 " is damaged: the %u bytes at offset %" PRIu64
			       " are not those that were written",
			       s->generation, (unsigned int)sum.length, begin);
	pthread_mutex_lock(&s->lock);
	struct sum *f = find_block_locked(s, frame / BLOCK);
	if (f)
		f[frame % BLOCK].checked = true;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int sums_check(struct sums *s, int spool, uint64_t offset, size_t n, struct err *err)
{
	const uint64_t last = min_u64(div_up_u64(offset + n, SUMS_FRAME), SUMS_MAX);
	int rc = 0;
	for (uint64_t i = offset / SUMS_FRAME; rc == 0 && s->loaded && i < last; i++)
		rc = check_frame(s, spool, (size_t)i, offset + n, err);
	return rc;
}

/* Computes the CRC-32C of the bytes [x.at, x.at + x.n) of a frame. If they are the last ones that
 * its checksum covers, what is before them is read instead, unless that is more. */
static int span_crc(struct sums *s, int spool, size_t frame, struct span x, uint32_t *crc)
{
	const uint64_t begin = (uint64_t)frame * SUMS_FRAME;
	const struct sum sum = find_sum(s, frame);
	uint32_t before;
	if (sum.lost || sum.marked || sum.damaged || sum.length != x.at + x.n || x.at > x.n)
		return read_crc(spool, begin + x.at, x.n, crc);
	const int rc = read_crc(spool, begin, x.at, &before);
	*crc = sum.crc ^ checksum_crc32c_shift(before, x.n);
	return rc;
}

int sums_crc(struct sums *s, int spool, uint64_t offset, uint64_t n, uint32_t *crc)
{
	const uint64_t end = offset + n;
	int rc = 0;
	*crc = 0;
	while (rc == 0 && offset < end) {
		const uint64_t frame = offset / SUMS_FRAME;
		const uint64_t stop = min_u64(end, (frame + 1) * SUMS_FRAME);
		const struct span x = {(uint32_t)(offset % SUMS_FRAME), (uint32_t)(stop - offset)};
		uint32_t part = 0;
		rc = span_crc(s, spool, (size_t)min_u64(frame, SUMS_MAX), x, &part);
		*crc = checksum_crc32c_shift(*crc, x.n) ^ part;
		offset = stop;
	}
	return rc;
}
