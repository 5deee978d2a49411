/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks in shards: which requests a chunk takes, what proves that it is absent, and what happens
 * if an object changes. The bucket has a store with the array "a" of 256 bytes, of which a shard
 * has 64 in 8 inner chunks. Each byte of a chunk is the version of its shard.
 */
#include "domain_fixture.h"

#include <errno.h>
#include <pthread.h>

#include <base/checksum.h>
#include <bucket/schemas.h>

#include "domain/domain_internal.h"
#include "mem_store.h"

#define ROOT  "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define BYTES "{\"name\":\"bytes\"}"
#define CRC   "{\"name\":\"crc32c\"}"
#define SHARDED(inner, codecs)                                                                     \
	"{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[" inner                \
	"],\"codecs\":[" codecs "],\"index_codecs\":[" BYTES "," CRC "]}}"
#define ARRAY(codecs)                                                                              \
	"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[256],\"data_type\":\"uint8\","      \
	"\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[64]}},"          \
	"\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":9,\"codecs\":[" codecs "]}"
#define PLAIN ARRAY(SHARDED("8", BYTES))

enum {
	CHUNKS = 8, /* of a shard */
	CHUNK = 8,  /* bytes */
	INDEX = CHUNKS * 16 + 4,
	BODY = CHUNKS * CHUNK,
	HOLE = 3, /* the chunk of each shard that is not stored */
};

static int open_bucket(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->env = env_real(NULL, pool_new(0));
	f->store = store_count_new(store_mem_new(&f->env, NULL), NULL);
	assert_non_null(f->store);
	*state = f;
	return 0;
}

static void put(struct fixture *f, const char *key, const void *bytes, size_t n)
{
	assert_int_equal(call_put(f->store, key, bytes, n, NULL, NULL, NULL), 0);
}

static void put_u64(uint8_t *out, uint64_t n)
{
	for (unsigned int i = 0; i < 8; i++)
		out[i] = (uint8_t)(n >> 8 * i);
}

static void add_checksum(uint8_t *bytes, size_t n)
{
	const uint32_t crc = checksum_crc32c(bytes, n, 0);
	for (unsigned int i = 0; i < 4; i++)
		bytes[n + i] = (uint8_t)(crc >> 8 * i);
}

/* Makes a shard. The chunks are in the reverse order of their numbers. */
static void make_shard(uint8_t version, uint8_t out[BODY + INDEX])
{
	memset(out, version, BODY);
	for (uint64_t i = 0; i < CHUNKS; i++) {
		put_u64(out + BODY + 16 * i, i == HOLE ? UINT64_MAX : (CHUNKS - 1 - i) * CHUNK);
		put_u64(out + BODY + 16 * i + 8, i == HOLE ? UINT64_MAX : CHUNK);
	}
	add_checksum(out + BODY, INDEX - 4);
}

static void put_shard(struct fixture *f, int shard, uint8_t version)
{
	uint8_t bytes[BODY + INDEX];
	char key[32];
	make_shard(version, bytes);
	snprintf(key, sizeof(key), "x.zarr/a/c/%d", shard);
	put(f, key, bytes, sizeof(bytes));
}

/* Shards 0 to 2 are stored. If is_large is true, there are more keys than a listing shows. */
static void make_store(struct fixture *f, const char *array, bool is_large)
{
	put(f, "x.zarr/zarr.json", ROOT, strlen(ROOT));
	put(f, "x.zarr/a/zarr.json", array, strlen(array));
	for (int i = 0; i < 3; i++)
		put_shard(f, i, 1);
	for (int i = 0; is_large && i < DOMAIN_LISTING; i++) {
		char key[32];
		snprintf(key, sizeof(key), "x.zarr/b/%d", i);
		put(f, key, "x", 1);
	}
}

static struct domain *open_domain(struct fixture *f)
{
	struct schema_mark mark = {0};
	struct store_meta meta;
	struct domain *d = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(call_head(f->store, "x.zarr/zarr.json", &meta, NULL), 0);
	assert_true(schema_mark_add(schema_all(), "zarr.json", &mark));
	struct schema_document *document =
		schema_mark_document(&mark, "zarr.json", meta.etag, meta.mtime_ns, meta.size);
	assert_non_null(document);
	const struct domain_hint hint = {.document = document};
	if (domain_open(&(struct domain_bucket){.env = &f->env,
						.store = f->store,
						.schemas = schema_all()},
			"x.zarr", &hint, &d, &err))
		fail_msg("%s", err.msg);
	schema_document_unref(document);
	return d;
}

static void open_store(struct fixture *f)
{
	domain_unref(f->domain);
	f->domain = open_domain(f);
}

static void open_new(struct fixture *f, const char *array, bool is_large)
{
	make_store(f, array, is_large);
	open_store(f);
	assert_true(domain_sees_chunks(f->domain) == !is_large);
}

/* ---- reading ---- */

static uint32_t dataset_of(struct domain *d)
{
	const struct tree *t = domain_tree(d);
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		if (o->kind == OBJECT_DATASET && o->dataset.shard)
			return tree_nth(t, i);
	}
	fail_msg("there is no array with shards");
	return 0;
}

struct seen {
	unsigned int calls;
	int code;
	bool absent;
	uint8_t value; /* of all bytes */
	char message[ERR_MAX];
};

static void see(void *arg, struct chunk_result *chunk)
{
	struct seen *s = arg;
	s->code = chunk->code;
	s->absent = chunk->absent;
	snprintf(s->message, sizeof(s->message), "%s", chunk->err.msg);
	if (!chunk->code && !chunk->absent) {
		const struct bytes *b = &chunk->data.elems.fixed;
		assert_int_equal(b->len, CHUNK);
		s->value = b->data[0];
		for (size_t i = 1; i < b->len; i++)
			assert_int_equal(b->data[i], s->value);
	}
	chunk_data_release(&chunk->data);
	s->calls++;
}

static void get(struct domain *d, uint64_t number, void *batch, struct seen *s)
{
	const struct chunk_source source = domain_chunk_source(d);
	*s = (struct seen){0};
	source.get(
		source.ctx,
		&(struct chunk_request){.dataset = dataset_of(d), .number = number, .batch = batch},
		see, s);
}

/* Reads a chunk in a bucket without workers. */
static struct seen read_chunk(struct fixture *f, uint64_t number)
{
	struct seen s;
	get(f->domain, number, NULL, &s);
	assert_int_equal(s.calls, 1);
	return s;
}

static void assert_value(struct fixture *f, uint64_t number, uint8_t value)
{
	const struct seen s = read_chunk(f, number);
	assert_string_equal(s.message, "");
	assert_false(s.absent);
	assert_int_equal(s.value, value);
}

static void assert_absent(struct fixture *f, uint64_t number)
{
	const struct seen s = read_chunk(f, number);
	assert_int_equal(s.code, 0);
	assert_true(s.absent);
}

static void assert_fails(struct fixture *f, uint64_t number, int code, const char *message)
{
	const struct seen s = read_chunk(f, number);
	assert_string_equal(s.message, message);
	assert_int_equal(s.code, code);
}

/* Returns the number of requests since the last call. */
static uint64_t requests(struct fixture *f)
{
	static uint64_t before;
	struct store_counts n;
	store_count_read(f->store, &n);
	const uint64_t now = n.calls[STORE_GET] + n.calls[STORE_HEAD] + n.calls[STORE_LIST];
	const uint64_t since = now - before;
	before = now;
	return since;
}

/* ---- requests ---- */

static void a_chunk_takes_an_index_and_a_range(void **state)
{
	struct fixture *f = *state;
	for (int is_large = 0; is_large < 2; is_large++) {
		open_new(f, PLAIN, is_large);
		requests(f);
		assert_value(f, 5, 1);
		assert_int_equal(requests(f), 2);
		assert_value(f, 6, 1);
		assert_int_equal(requests(f), 1);
		assert_value(f, 2 * CHUNKS, 1);
		assert_int_equal(requests(f), 2);
	}
}

/* In the order of their offsets, not of their numbers. */
static void the_chunks_of_a_batch_are_joined(void **state)
{
	struct fixture *f = *state;
	struct seen seen[2 * CHUNKS];
	open_new(f, PLAIN, false);
	const struct chunk_source source = domain_chunk_source(f->domain);
	requests(f);
	void *batch = source.begin(source.ctx);
	for (uint64_t i = 0; i < 2 * CHUNKS; i++)
		get(f->domain, i, batch, &seen[i]);
	assert_int_equal(requests(f), 0);
	source.end(source.ctx, batch);
	assert_int_equal(requests(f), 4); /* two indexes, and the chunks of both shards */
	for (uint64_t i = 0; i < 2 * CHUNKS; i++) {
		assert_int_equal(seen[i].calls, 1);
		assert_int_equal(seen[i].code, 0);
		assert_true(seen[i].absent == (i % CHUNKS == HOLE));
	}
}

static void a_nested_shard_has_an_index_of_its_own(void **state)
{
	struct fixture *f = *state;
	/* Two inner shards, which are those of the other tests. */
	static const char array[] =
		"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[256],\"data_type\":"
		"\"uint8\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{"
		"\"chunk_shape\":[128]}},\"chunk_key_encoding\":{\"name\":\"default\"},"
		"\"fill_value\":9,\"codecs\":[" SHARDED("64", SHARDED("8", BYTES)) "]}";
	uint8_t bytes[2 * (BODY + INDEX) + 36], *index = bytes + 2 * (BODY + INDEX);
	make_shard(4, bytes);
	make_shard(5, bytes + BODY + INDEX);
	for (uint64_t i = 0; i < 2; i++) {
		put_u64(index + 16 * i, i * (BODY + INDEX));
		put_u64(index + 16 * i + 8, BODY + INDEX);
	}
	add_checksum(index, 32);
	make_store(f, array, false);
	put(f, "x.zarr/a/c/0", bytes, sizeof(bytes));
	open_store(f);
	requests(f);
	assert_value(f, 0, 4);
	assert_int_equal(requests(f), 3);
	assert_value(f, CHUNKS, 5);
	assert_int_equal(requests(f), 2);
	assert_value(f, CHUNKS + 1, 5);
	assert_int_equal(requests(f), 1);
	assert_absent(f, CHUNKS + HOLE);
	assert_int_equal(requests(f), 0);
}

static void an_encoded_shard_is_read_once(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[BODY + INDEX + 4];
	make_store(f, ARRAY(SHARDED("8", BYTES) "," CRC), false);
	make_shard(7, bytes);
	add_checksum(bytes, BODY + INDEX);
	put(f, "x.zarr/a/c/0", bytes, sizeof(bytes));
	open_store(f);
	requests(f);
	for (uint64_t i = 0; i < CHUNKS; i++)
		if (i != HOLE)
			assert_value(f, i, 7);
	assert_absent(f, HOLE);
	assert_int_equal(requests(f), 1);
	const struct seen s = read_chunk(f, CHUNKS);
	assert_int_equal(s.code, -EIO);
	assert_non_null(strstr(s.message,
			       "domain /x.zarr: chunk x.zarr/a/c/1: the codecs around the "
			       "shard: crc32c does not match"));
}

static void see_place(void *arg, struct chunk_result *chunk)
{
	struct seen *s = arg;
	s->calls++;
	s->code = chunk->code;
	s->absent = chunk->absent;
	assert_null(chunk->data.elems.fixed.data);
}

static void only_the_places_of_chunks_are_read(void **state)
{
	struct fixture *f = *state;
	open_new(f, PLAIN, false);
	const struct chunk_source source = domain_chunk_source(f->domain);
	requests(f);
	for (uint64_t i = 0; i < CHUNKS; i++) {
		struct seen s = {0};
		source.get(source.ctx,
			   &(struct chunk_request){.dataset = dataset_of(f->domain),
						   .number = i,
						   .only_place = true},
			   see_place, &s);
		assert_true(s.calls == 1 && s.code == 0 && s.absent == (i == HOLE));
	}
	assert_int_equal(requests(f), 1);
}

/* Each index is read once, and no chunk. */
static void stored_chunks_are_found_in_the_indexes(void **state)
{
	struct fixture *f = *state;
	for (int is_large = 0; is_large < 2; is_large++) {
		open_new(f, PLAIN, is_large);
		const struct chunk_source source = domain_chunk_source(f->domain);
		struct chunk_list list;
		requests(f);
		assert_int_equal(source.find(source.ctx, dataset_of(f->domain), &list, NULL), 0);
		/* The document is checked, and without a listing the last shard is requested. */
		assert_int_equal(requests(f), is_large ? 3 + 1 + 1 : 3 + 1);
		assert_int_equal(list.n, 3 * (CHUNKS - 1));
		for (uint64_t i = 0; i < list.n; i++)
			assert_int_equal(list.numbers[i],
					 i + i / (CHUNKS - 1) + (i % (CHUNKS - 1) >= HOLE));
		free((void *)(uintptr_t)list.numbers);
	}
}

/* ---- absence ---- */

static void chunks_that_are_not_stored(void **state)
{
	struct fixture *f = *state;
	open_new(f, PLAIN, false);
	requests(f);
	assert_absent(f, HOLE); /* the index says so */
	assert_int_equal(requests(f), 1);
	assert_absent(f, 3 * CHUNKS); /* the listing does */
	assert_int_equal(requests(f), 0);
	open_new(f, PLAIN, true);
	requests(f);
	assert_absent(f, 3 * CHUNKS);
	assert_int_equal(requests(f), 2); /* the shard, and the document of the array */
	assert_absent(f, 3 * CHUNKS + 1);
	assert_int_equal(requests(f), 0);
}

static void a_shard_that_was_deleted_is_no_absent_chunk(void **state)
{
	struct fixture *f = *state;
	for (int is_large = 0; is_large < 2; is_large++) {
		open_new(f, PLAIN, is_large);
		assert_value(f, 0, 1);
		assert_int_equal(call_delete(f->store, "x.zarr/a/c/0", NULL, NULL), 0);
		assert_int_equal(read_chunk(f, 1).code, -ESTALE);
		assert_true(domain_is_outdated(f->domain));
		/* Its index is read again. */
		shards_forget(&f->domain->ranges);
		assert_int_equal(read_chunk(f, 1).code, -ESTALE);
	}
}

static void an_array_that_was_deleted_has_no_absent_chunks(void **state)
{
	struct fixture *f = *state;
	open_new(f, PLAIN, true);
	assert_int_equal(call_delete(f->store, "x.zarr/a/zarr.json", NULL, NULL), 0);
	assert_int_equal(read_chunk(f, 3 * CHUNKS).code, -ESTALE);
}

/* ---- versions ---- */

static void an_open_domain_reads_one_version(void **state)
{
	struct fixture *f = *state;
	for (int is_large = 0; is_large < 2; is_large++) {
		open_new(f, PLAIN, is_large);
		assert_value(f, 0, 1);
		put_shard(f, 0, 2);
		assert_int_equal(read_chunk(f, 1).code, -ESTALE);
		assert_true(domain_is_outdated(f->domain));
		/* It is the same if the index is read again. */
		shards_forget(&f->domain->ranges);
		assert_int_equal(read_chunk(f, 1).code, -ESTALE);
		open_store(f);
		assert_value(f, 1, 2);
	}
}

static void a_shard_that_changes_before_it_is_read(void **state)
{
	struct fixture *f = *state;
	open_new(f, PLAIN, false);
	put_shard(f, 0, 2);
	assert_int_equal(read_chunk(f, 0).code, -ESTALE); /* the listing has another version */
	open_new(f, PLAIN, true);
	put_shard(f, 0, 3);
	assert_value(f, 0, 3);
}

/* The next open of a domain whose shards no listing shows reads their indexes again. */
static void forgotten_indexes(void **state)
{
	struct fixture *f = *state;
	char etag[STORE_ETAG_MAX];
	bool absent;
	open_new(f, PLAIN, true);
	assert_value(f, 0, 1);
	assert_int_equal(domain_chunk_version(f->domain, dataset_of(f->domain), 5, etag, &absent),
			 0);
	assert_true(etag[0] && !absent); /* that of its shard */
	put_shard(f, 0, 2);
	domain_forget_chunks(f->domain);
	assert_value(f, 1, 2);
	assert_false(domain_is_outdated(f->domain));
}

enum { READERS = 32, OPENS = 5 };

struct world {
	struct fixture *f;
	atomic_bool stop;
	atomic_uint values, stale;
};

static void *reader(void *arg)
{
	struct world *w = arg;
	for (unsigned int i = 0; i < OPENS; i++) {
		struct domain *d = open_domain(w->f);
		uint8_t version[3] = {0};
		for (uint64_t n = 0; n < 3 * CHUNKS; n++) {
			struct seen s;
			if (n % CHUNKS == HOLE)
				continue;
			get(d, n, NULL, &s);
			assert_int_equal(s.calls, 1);
			assert_true(s.code == 0 || s.code == -ESTALE);
			assert_false(s.absent);
			atomic_fetch_add(s.code ? &w->stale : &w->values, 1);
			uint8_t *known = &version[n / CHUNKS];
			assert_true(s.code || !*known || *known == s.value);
			*known = s.code ? *known : s.value;
		}
		domain_unref(d);
	}
	return NULL;
}

static void *replacer(void *arg)
{
	struct world *w = arg;
	for (unsigned int i = 0; !atomic_load(&w->stop); i++)
		put_shard(w->f, (int)(i % 3), (uint8_t)(1 + i % 250));
	return NULL;
}

static void readers_beside_a_program_that_replaces_shards(void **state)
{
	struct world w = {.f = *state};
	pthread_t readers[READERS], writer;
	make_store(w.f, PLAIN, true);
	assert_int_equal(pthread_create(&writer, NULL, replacer, &w), 0);
	for (size_t i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, reader, &w), 0);
	for (size_t i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	atomic_store(&w.stop, true);
	pthread_join(writer, NULL);
	assert_true(atomic_load(&w.values) > 0);
}

/* ---- damage ---- */

static void damaged_shards(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[BODY + INDEX];
	make_store(f, PLAIN, false);
	make_shard(1, bytes);
	put_u64(bytes + BODY, BODY + INDEX); /* of chunk 0 */
	add_checksum(bytes + BODY, INDEX - 4);
	put(f, "x.zarr/a/c/0", bytes, sizeof(bytes));
	put(f, "x.zarr/a/c/1", bytes, INDEX - 1);
	put(f, "x.zarr/a/c/2", bytes, 0);
	bytes[BODY] ^= 1;
	put(f, "x.zarr/a/c/3", bytes, sizeof(bytes));
	open_store(f);
#define MESSAGE "domain /x.zarr: chunk x.zarr/a/c/"
	assert_fails(f, 0, -EIO,
		     MESSAGE "0: index of the shard: inner chunk 0 has offset 196 and length 8: it "
			     "ends behind the shard");
	assert_value(f, 1, 1);
	assert_fails(f, CHUNKS, -EIO, MESSAGE "1: the shard has 131 bytes, its index has 132");
	assert_fails(f, 2 * CHUNKS, -EIO, MESSAGE "2: the shard has 0 bytes, its index has 132");
	const struct seen s = read_chunk(f, 3 * CHUNKS);
	assert_int_equal(s.code, -EIO);
	assert_non_null(strstr(s.message, MESSAGE "3: index of the shard: crc32c does not match"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bucket, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_chunk_takes_an_index_and_a_range),
		TEST(the_chunks_of_a_batch_are_joined),
		TEST(a_nested_shard_has_an_index_of_its_own),
		TEST(an_encoded_shard_is_read_once),
		TEST(only_the_places_of_chunks_are_read),
		TEST(stored_chunks_are_found_in_the_indexes),
		TEST(chunks_that_are_not_stored),
		TEST(a_shard_that_was_deleted_is_no_absent_chunk),
		TEST(an_array_that_was_deleted_has_no_absent_chunks),
		TEST(an_open_domain_reads_one_version),
		TEST(a_shard_that_changes_before_it_is_read),
		TEST(forgotten_indexes),
		TEST(readers_beside_a_program_that_replaces_shards),
		TEST(damaged_shards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
