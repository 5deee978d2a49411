/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunk objects that the service has written: they are decoded, encoded in the form that the
 * dataset records, and decoded again. The elements are the same, and so is the form.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <codec/chunk.h>
#include <data/tree_diff.h>
#include <schema/schema.h>

#include "schema/hsds/parse_object.h"
#include "decode_elems.h"

enum { TEXTS = 4096 };

/* Forms of the objects that were found. */
enum form { PLAIN, FRAME, OTHER, FORMS };

static struct {
	unsigned int objects[FORMS];
	unsigned int bitshuffled, shuffled;
	char texts[TEXTS][CODEC_REF_TEXT + 1]; /* of references; number + 1 is the index + 1 */
	uint32_t ntexts;
} seen;

static uint64_t resolve(void *ctx, const char *text, size_t n)
{
	uint32_t i = 0;
	while (i < seen.ntexts && (strlen(seen.texts[i]) != n || memcmp(seen.texts[i], text, n)))
		i++;
	if (i == seen.ntexts) {
		assert_true(i < TEXTS && n <= CODEC_REF_TEXT);
		memcpy(seen.texts[seen.ntexts++], text, n);
	}
	return i + 1;
}

static void name(void *ctx, uint64_t ref, char *text)
{
	memset(text, 0, OBJECT_REF_TEXT);
	if (ref)
		memcpy(text, seen.texts[ref - 1], strlen(seen.texts[ref - 1]));
}

static struct bytes read_whole(const char *path)
{
	struct bytes b = {0};
	char piece[65536];
	size_t n;
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		assert_int_equal(bytes_append(&b, piece, n), 0);
	fclose(f);
	return b;
}

static enum form form_of(const struct dataset *ds, const struct bytes *b, uint64_t nelems)
{
	const uint64_t size = codec_stored_elem_size(ds->type);
	const uint32_t len = (uint32_t)b->len;
	const uint8_t cbytes[] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16),
				  (uint8_t)(len >> 24)};
	if (codec_chain_served(ds->chain)->compressor && b->len >= 16 && b->data[0] == 2 &&
	    memcmp(b->data + 12, cbytes, 4) == 0)
		return FRAME;
	const bool is_zlib = b->len > 1 && b->data[0] == 0x78;
	return size ? (b->len == size * nelems ? PLAIN : OTHER) : is_zlib ? OTHER : PLAIN;
}

/* stored: as the service wrote it; own: of this program. */
static void compare_forms(const struct dataset *ds, uint64_t n, const struct bytes *stored,
			  const struct bytes *own)
{
	const enum form form = form_of(ds, stored, n);
	seen.objects[form]++;
	if (form == FRAME) {
		const uint8_t *a = stored->data, *b = own->data;
		assert_int_equal(form_of(ds, own, n), FRAME);
		assert_int_equal(a[2] >> 5, b[2] >> 5);
		assert_int_equal(a[3], b[3]);
		assert_memory_equal(a + 4, b + 4, 4); /* decoded size */
		if (!(a[2] & 4))		      /* version 0.8.4 has shuffled the bits */
			assert_int_equal(a[2] & 1, b[2] & 1);
		seen.shuffled += b[2] & 1;
	} else if (form == PLAIN) {
		assert_int_equal(own->len, stored->len);
		assert_memory_equal(own->data, stored->data, own->len);
	} else if (codec_chain_served(ds->chain)->shuffle == SERVED_SHUFFLE_BIT) {
		assert_memory_equal(own->data, stored->data, 12);
	}
	seen.bitshuffled += codec_chain_served(ds->chain)->shuffle == SERVED_SHUFFLE_BIT;
}

static void check_chunk(const struct dataset *ds, const char *path, bool v1)
{
	const struct object_resolver resolver = {.resolve = resolve};
	const struct object_namer namer = {.name = name};
	struct err err = ERR_INIT;
	struct elems first, again;
	struct bytes stored = read_whole(path), copy = {0}, own = {0};
	const uint64_t n = ds->grid.chunk_elems;
	const struct codec_chunk c = {
		.chain = ds->chain, .max_bytes = 1 << 28, .resolver = &resolver};
	const struct codec_encode e = {.chain = ds->chain, .namer = &namer};
	assert_int_equal(bytes_append(&copy, stored.data, stored.len), 0);
	if (decode_elems(&c, &copy, &first, &err) || codec_chunk_encode(&e, &first, &own, &err))
		fail_msg("%s: %s", path, err.msg);
	compare_forms(ds, n, &stored, &own);
	if (decode_elems(&c, &own, &again, &err))
		fail_msg("%s: again: %s", path, err.msg);
	if (!elems_identical(ds->type, n, &first, &again, NULL))
		fail_msg("%s: other elements", path);
	elems_release(&first);
	elems_release(&again);
	bytes_release(&stored);
	bytes_release(&copy);
	bytes_release(&own);
}

static uint32_t no_number(void *ctx, const struct schema_id *id)
{
	return OBJECT_NONE;
}

static void no_skip(void *ctx, const char *what, const struct err *why)
{
}

/* The chunks of version 2 are in the folder of the dataset; the names of those of version 1 have
 * its UUID. */
static void check_chunks(const struct dataset *ds, const char *document, const char *uuid)
{
	char path[4096], folder[2048];
	snprintf(folder, sizeof(folder), "%s", document);
	*strrchr(folder, '/') = '\0';
	const bool v1 = !strstr(document, ".dataset.json");
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	for (const struct dirent *d; (d = readdir(dir));) {
		const char *chunk = strstr(d->d_name, "-c-");
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		if (d->d_name[0] == '.' || d->d_type != DT_REG)
			continue;
		if (!v1 || (chunk && strncmp(chunk + 3, uuid, strlen(uuid)) == 0))
			check_chunk(ds, path, v1);
	}
	closedir(dir);
}

static int check_document(const char *path, const struct stat *st, int flag, struct FTW *w)
{
	const struct schema_numbers numbers = {.number = no_number};
	const char *file = path + w->base;
	struct schema_id id, root;
	struct object o;
	struct err err = ERR_INIT;
	const bool v2 = strcmp(file, ".dataset.json") == 0;
	if (flag != FTW_F || (!v2 && strncmp(file + strcspn(file, "-"), "-d-", 3) != 0))
		return 0;
	struct bytes text = read_whole(path);
	json_t *doc = json_loadb((const char *)text.data, text.len, 0, NULL);
	if (!doc) { /* bare NaN and such */
		bytes_release(&text);
		return 0;
	}
	const char *own = json_string_value(json_object_get(doc, "id"));
	const char *top = json_string_value(json_object_get(doc, "root"));
	assert_true(schema_id_parse(own, strlen(own), &id));
	assert_true(schema_id_parse(top, strlen(top), &root));
	struct arena *arena = arena_new(64 << 20);
	if (schema_object_parse(arena, arena, &id, &root, text.data, text.len, &numbers, NULL,
				no_skip, NULL, &o, &err) == 0 &&
	    !o.dataset.reference)
		check_chunks(&o.dataset, path, own + 2);
	object_release(&o);
	arena_free(arena);
	json_decref(doc);
	bytes_release(&text);
	return 0;
}

static void check_bucket(const char *archive, const char *members)
{
	char dir[] = "/tmp/stored-XXXXXX", command[4096];
	memset(&seen, 0, sizeof(seen));
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command),
		 "tar -xJf '%s/tests/data/%s.tar.xz' -C %s --wildcards '%s'",
		 getenv("HSMOUNT_SOURCE"), archive, dir, members);
	assert_int_equal(system(command), 0);
	assert_int_equal(nftw(dir, check_document, 16, FTW_PHYS), 0);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
	print_message("%s: %u plain, %u frames, %u others, %u bitshuffled\n", archive,
		      seen.objects[PLAIN], seen.objects[FRAME], seen.objects[OTHER],
		      seen.bitshuffled);
}

static void version_2(void **state)
{
	check_bucket("hsds-v2", "*/d/*");
	assert_in_range(seen.objects[FRAME], 50, UINT32_MAX);
	assert_in_range(seen.objects[PLAIN], 50, UINT32_MAX);
	assert_in_range(seen.bitshuffled, 10, UINT32_MAX);
	assert_in_range(seen.shuffled, 10, UINT32_MAX);
}

/* The service wrote zlib streams then, and reads and writes frames now. */
static void version_1(void **state)
{
	check_bucket("hsds-v1", "hsds-v1/*-*");
	assert_in_range(seen.objects[OTHER], 5, UINT32_MAX);
	assert_int_equal(seen.objects[FRAME], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2),
		cmocka_unit_test(version_1),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
