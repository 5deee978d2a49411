/* SPDX-License-Identifier: Apache-2.0 */
/* Local files: a sound one, and damage of its header, its chunks and its length. */
#include "findings.h"

struct file {
	char path[128];
	uint8_t *bytes;
	size_t n;
};

/* Writes the rendered file of a domain with one stored chunk to a local file. */
static void make_file(struct test_bucket *b, struct file *f)
{
	static const struct bucket_more more = {0};
	struct engine_file *in;
	struct engine_stat st;
	bucket_datasets(b, "x.h5", 1, 1, &more);
	bucket_chunk(b, 0, "0123456789abcdef");
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_file_open(b->engine, "x.h5", &in, NULL), 0);
	engine_file_stat(in, &st);
	f->n = st.size;
	f->bytes = malloc(f->n);
	assert_int_equal(engine_pread(in, f->bytes, f->n, 0, NULL, NULL), f->n);
	engine_file_close(in);
	snprintf(f->path, sizeof(f->path), "%s/local.h5", b->dir);
}

static void write_file(const struct file *f, size_t n)
{
	FILE *out = fopen(f->path, "wb");
	assert_non_null(out);
	assert_int_equal(fwrite(f->bytes, 1, n, out), n);
	fclose(out);
}

static struct engine_check_result check(const struct file *f, bool all, struct findings *s)
{
	const struct engine_check_sink sink = findings_sink(s);
	str_release(&s->text);
	*s = (struct findings){0};
	assert_int_equal(engine_check_file(f->path, all, &sink, NULL), 0);
	return s->last;
}

static void sound_and_damaged_files(void **state)
{
	struct findings s = {0};
	struct file f;
	make_file(*state, &f);
	write_file(&f, f.n);
	for (int all = 0; all < 2; all++) {
		const struct engine_check_result r = check(&f, all, &s);
		assert_int_equal(engine_check_outcome(&r), ENGINE_CHECK_SOUND);
		assert_int_equal(r.objects, 2);
		assert_int_equal(r.chunks, 1);
		assert_int_equal(r.decoded, 1);
		assert_int_equal(r.decoded_bytes, 16);
	}
	for (size_t n = 0; n < f.n; n += f.n / 16 + 1) {
		write_file(&f, n);
		const struct engine_check_result r = check(&f, true, &s);
		assert_int_equal(engine_check_outcome(&r), ENGINE_CHECK_DAMAGED);
	}
	f.bytes[0] ^= 1;
	write_file(&f, f.n);
	check(&f, true, &s);
	assert_int_equal(s.last.findings[ENGINE_CHECK_ERROR], 1);
	free(f.bytes);
	str_release(&s.text);
}

static void files_that_cannot_be_opened(void **state)
{
	struct test_bucket *b = *state;
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	struct err err = ERR_INIT;
	assert_int_equal(engine_check_file("/nonexistent/x.h5", false, &sink, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/x.h5"));
	assert_true(engine_check_file(b->dir, false, &sink, &err) < 0);
	assert_int_equal(s.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sound_and_damaged_files, bucket_setup,
						bucket_teardown),
		cmocka_unit_test_setup_teardown(files_that_cannot_be_opened, bucket_setup,
						bucket_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
