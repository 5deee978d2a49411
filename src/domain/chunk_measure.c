/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the sizes of chunks of variable length. An image needs the decoded size of each chunk
 * before any of them is read. The first bytes of a compressed chunk contain its decoded size. A
 * zlib stream has no size and is read whole, and so is a chunk that is text.
 *
 * If no listing shows which chunks of a dataset are stored, each chunk of its grid is requested.
 */
#include <domain/domain.h>

#include <errno.h>

#include "domain_internal.h"

#include <codec/chunk.h>

enum {
	AT_ONCE = 1024,
	WHOLE_AT_ONCE = 16,
	PROBES_MAX = 1 << 16,	/* chunks of a dataset that are requested one by one */
	PROBE_BYTES = 16 << 10, /* requested first of each; small chunks are whole */
};

/* Returns the error of a temporary failure, otherwise 0. A temporary failure fails the open,
 * because without the chunk the file would have another layout. -EFBIG is not temporary: it is a
 * property of the chunk. */
static int temporary_failure(const struct store_request *req, bool must_exist, struct err *err)
{
	int rc = store_failure(&req->answer, NULL);
	if (store_absence(&req->answer) && must_exist)
		return err_set(err, -ESTALE, "chunk %s: deleted since it was listed", req->key);
	if (rc == 0 || rc == -EFBIG)
		return 0;
	store_failure(&req->answer, err);
	return err_wrap(err, rc, "chunk %s", req->key);
}

/* Does the same as size_of() for a chunk that is text. Returns SCHEMA_NOT_TEXT for other chunks. */
static int size_of_text(const struct domain *d, uint32_t number, const struct store_answer *a,
			uint64_t *size, struct err *why)
{
	const struct object *o = &tree_object(d->tree, number)->o;
	auto_bytes struct bytes bytes = {0};
	if (!d->schema->chunk_text)
		return SCHEMA_NOT_TEXT;
	int rc = d->schema->chunk_text(d->space, o, a->body.data, a->body.len, a->meta.size, &bytes,
				       why);
	*size = bytes.len;
	if (rc == 0 && bytes.len > CHUNK_BYTES_MAX)
		rc = err_set(why, -EFBIG, "chunk has %zu bytes, the limit is %d", bytes.len,
			     CHUNK_BYTES_MAX);
	return rc;
}

/* Gets the decoded size of a chunk from the bytes in req. Fails with -EAGAIN if more bytes are
 * needed, and with -ENOMEM. Any other error means that the chunk is damaged. */
static int size_of(const struct domain *d, uint32_t number, const struct store_request *req,
		   uint64_t *size, struct err *why)
{
	const struct store_answer *a = &req->answer;
	const struct codec_chunk c = {.chain = tree_object(d->tree, number)->o.dataset.chain,
				      .max_bytes = CHUNK_BYTES_MAX};
	int rc = store_failure(a, why);
	if (!rc)
		rc = size_of_text(d, number, a, size, why);
	if (rc != SCHEMA_NOT_TEXT)
		return rc;
	return codec_decoded_size(&c, a->body.data, a->body.len, a->meta.size, size, why);
}

/* Chunks that are requested together. */
struct batch {
	struct domain *d;
	uint32_t number; /* of the dataset */
	struct chunk_probe *probes;
	bool must_exist;
	size_t *which; /* n indexes of probes */
	size_t n;
};

/* Takes the sizes from the answers. which[] keeps the chunks of which more bytes are needed; *left
 * becomes their number. */
static int take_sizes(const struct batch *b, struct store_request *const *reqs, size_t *left,
		      struct err *err)
{
	size_t again = 0;
	for (size_t i = 0; i < b->n; i++) {
		const struct store_request *req = reqs[i];
		struct chunk_probe *probe = &b->probes[b->which[i]];
		struct err why = ERR_INIT;
		int rc = temporary_failure(req, b->must_exist, err);
		if (rc)
			return rc;
		probe->absent = store_absence(&req->answer) != NULL;
		if (probe->absent)
			continue;
		probe->stored = req->answer.meta.size;
		rc = size_of(b->d, b->number, req, &probe->decoded, &why);
		if (rc == -ENOMEM)
			return err_set(err, rc, "out of memory");
		if (rc == -EAGAIN && req->range.length != STORE_TO_END) {
			b->which[again++] = b->which[i];
		} else if (rc) {
			tree_note(b->d->tree, TREE_DAMAGE, "%s: chunk cannot be read: %s", req->key,
				  why.msg);
			probe->decoded = UINT64_MAX;
		}
	}
	*left = again;
	return 0;
}

/* Requests the first `length` bytes of each chunk and takes their sizes. */
static int measure_some(const struct batch *b, uint64_t length, size_t *left, struct err *err)
{
	struct domain *d = b->d;
	struct store_request **reqs = store_requests_new(d->store, b->n);
	int rc = reqs ? 0 : err_no_memory(err);
	for (size_t i = 0; !rc && i < b->n; i++) {
		struct store_request *req = reqs[i];
		const int len = domain_chunk_key(d, b->number, b->probes[b->which[i]].number,
						 req->key, req->room);
		if (len < 0)
			rc = err_set(err, len, "a chunk has no key");
		req->range.length = length;
		req->max = CHUNK_BYTES_MAX;
		req->known_etag = domain_listed_etag(d, req->key);
	}
	if (!rc)
		store_run_all(d->store, reqs, b->n);
	if (!rc)
		rc = take_sizes(b, reqs, left, err);
	store_requests_free(reqs, b->n);
	return rc;
}

int domain_measure_chunks(struct domain *d, uint32_t number, struct chunk_probe *probes, size_t n,
			  uint64_t first_bytes, bool must_exist, struct err *err)
{
	auto_free size_t *which = calloc(n ? n : 1, sizeof(*which));
	struct batch b = {.d = d, .number = number, .probes = probes, .must_exist = must_exist};
	size_t whole = 0, left = 0;
	int rc = 0;
	if (!which)
		return err_no_memory(err);
	for (size_t first = 0; !rc && first < n; first += AT_ONCE, whole += left) {
		b.which = which + whole;
		b.n = (size_t)min_u64(AT_ONCE, n - first);
		for (size_t i = 0; i < b.n; i++)
			b.which[i] = first + i;
		rc = measure_some(&b, first_bytes, &left, err);
	}
	b.must_exist = true; /* their first bytes were present */
	for (size_t first = 0; !rc && first < whole; first += WHOLE_AT_ONCE) {
		b.which = which + first;
		b.n = (size_t)min_u64(WHOLE_AT_ONCE, whole - first);
		rc = measure_some(&b, STORE_TO_END, &left, err);
	}
	return rc;
}

int domain_probe_chunks(struct domain *d, uint32_t number, struct err *err)
{
	struct chunk_list *chunks = &d->chunks[number];
	const uint64_t n = tree_object(d->tree, number)->o.dataset.grid.nchunks;
	if (n > PROBES_MAX)
		return err_set(err, -E2BIG,
			       "no listing shows them, and there may be %llu; the size of each is "
			       "needed, and at most %d are requested",
			       (unsigned long long)n, PROBES_MAX);
	auto_free struct chunk_probe *probes = calloc(n ? n : 1, sizeof(*probes));
	uint64_t *numbers = arena_array(d->arena, n ? n : 1, sizeof(*numbers));
	uint64_t *decoded = arena_array(d->arena, n ? n : 1, sizeof(*decoded));
	if (!probes || !numbers || !decoded)
		return err_no_memory(err);
	for (uint64_t i = 0; i < n; i++)
		probes[i].number = i;
	int rc = domain_measure_chunks(d, number, probes, n, PROBE_BYTES, false, err);
	if (rc)
		return rc;
	for (uint64_t i = 0; i < n; i++) {
		if (probes[i].absent)
			continue;
		numbers[chunks->n] = i;
		decoded[chunks->n++] = probes[i].decoded;
		chunks->bytes += probes[i].stored;
	}
	chunks->numbers = numbers;
	chunks->decoded = decoded;
	chunks->listed = true;
	return 0;
}
