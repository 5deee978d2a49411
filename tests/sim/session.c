/* SPDX-License-Identifier: Apache-2.0 */
/* See session.h. The objects of a file are those that content.h lists. */
#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "h5_driver.h"

enum {
	WORD_DIGITS = 16,
	WORD_REPEATS = 5,
	WORD_REPEATS_MAX = 4200, /* its body is too large for a plan: PLAN_INLINE_MAX */
	WORD_MAX = WORD_DIGITS * WORD_REPEATS_MAX + 1,
	NAME_LEN = 8
};

struct session {
	struct driven f; /* after its first failure all calls do nothing */
	struct session_options opt;
	hid_t h5;
};

/* ---- the lock of the library ---- */

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

static void lock(struct session *s)
{
	if (!s->opt.wait)
		pthread_mutex_lock(&library);
	while (s->opt.wait && pthread_mutex_trylock(&library))
		s->opt.wait(s->opt.ctx);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static herr_t note_reason(unsigned int n, const H5E_error2_t *e, void *arg)
{
	const char **reason = arg;
	*reason = e->desc;
	return 0;
}

/* what: a call. */
static void fail(struct session *s, const char *what)
{
	const char *reason = "";
	if (s->f.rc)
		return;
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note_reason, &reason);
	s->f.rc = err_set(&s->f.err, -EIO, "libhdf5: %s: %s", what, reason ? reason : "");
}

static bool enter(struct session *s)
{
	if (s->f.rc)
		return false;
	lock(s);
	return true;
}

static int64_t leave(struct session *s, int64_t result, const char *what)
{
	if (result < 0)
		fail(s, what);
	pthread_mutex_unlock(&library);
	return result;
}

/* One call of the library, unless the session has failed. */
#define CALL(s, call) (enter(s) ? leave(s, (int64_t)(call), #call) : -1)

/* The same for a call that releases something, which follows failures, too. */
static void end(struct session *s, hid_t id, herr_t (*release)(hid_t id))
{
	if (id < 0)
		return;
	lock(s);
	leave(s, release(id), "a release");
}

/* ---- values ---- */

/* The text that stands for a number. It is short or long, and sometimes very long. */
static void word_of(uint64_t v, char text[WORD_MAX])
{
	text[0] = '\0';
	const uint64_t n = !v ? 0 : v % 4 == 1 ? WORD_REPEATS_MAX : v / 2 % 2 ? WORD_REPEATS : 1;
	for (uint64_t i = 0; i < n; i++)
		snprintf(text + i * WORD_DIGITS, WORD_DIGITS + 1, "%016llx", (unsigned long long)v);
}

/* The number of a text that the library has read, which is freed. */
static uint64_t take_text(struct session *s, char *text)
{
	char first[WORD_DIGITS + 1], whole[WORD_MAX];
	if (!text)
		return 0;
	snprintf(first, sizeof(first), "%s", text);
	const uint64_t v = strtoull(first, NULL, 16);
	word_of(v, whole);
	if (strcmp(text, whole) != 0 && !s->f.rc)
		s->f.rc = err_set(&s->f.err, -EIO, "a text is \"%.100s\"", text);
	lock(s);
	H5free_memory(text);
	pthread_mutex_unlock(&library);
	return v;
}

static hid_t text_type(struct session *s)
{
	const hid_t type = CALL(s, H5Tcopy(H5T_C_S1));
	CALL(s, H5Tset_size(type, H5T_VARIABLE));
	CALL(s, H5Tset_cset(type, H5T_CSET_UTF8));
	return type;
}

/* ---- attributes of / ---- */

static uint64_t get_number(struct session *s, const char *name)
{
	uint64_t v = 0;
	const hid_t a = CALL(s, H5Aopen(s->h5, name, H5P_DEFAULT));
	CALL(s, H5Aread(a, H5T_NATIVE_UINT64, &v));
	end(s, a, H5Aclose);
	return v;
}

static void set_number(struct session *s, const char *name, uint64_t v)
{
	const hid_t a = CALL(s, H5Aopen(s->h5, name, H5P_DEFAULT));
	CALL(s, H5Awrite(a, H5T_NATIVE_UINT64, &v));
	end(s, a, H5Aclose);
}

static hid_t add_attribute(struct session *s, const char *name, hid_t type)
{
	const hid_t space = CALL(s, H5Screate(H5S_SCALAR));
	const hid_t a = CALL(s, H5Acreate2(s->h5, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
	end(s, space, H5Sclose);
	return a;
}

static void add_number(struct session *s, const char *name, uint64_t v)
{
	hid_t type = CALL(s, H5Tcopy(H5T_STD_U64LE));
	end(s, add_attribute(s, name, type), H5Aclose);
	end(s, type, H5Tclose);
	set_number(s, name, v);
}

static uint64_t get_note(struct session *s)
{
	char *text = NULL;
	uint64_t v = 0;
	if (CALL(s, H5Aexists(s->h5, "note")) <= 0)
		return 0;
	const hid_t type = text_type(s), a = CALL(s, H5Aopen(s->h5, "note", H5P_DEFAULT));
	CALL(s, H5Aread(a, type, &text));
	v = take_text(s, text);
	end(s, a, H5Aclose);
	end(s, type, H5Tclose);
	return v;
}

static void set_note(struct session *s, uint64_t from, uint64_t to)
{
	char word[WORD_MAX];
	const char *text = word;
	if (from == to)
		return;
	if (!to) {
		CALL(s, H5Adelete(s->h5, "note"));
		return;
	}
	word_of(to, word);
	const hid_t type = text_type(s);
	const hid_t a = from ? CALL(s, H5Aopen(s->h5, "note", H5P_DEFAULT))
			     : add_attribute(s, "note", type);
	CALL(s, H5Awrite(a, type, &text));
	end(s, a, H5Aclose);
	end(s, type, H5Tclose);
}

/* ---- datasets ---- */

static hid_t open_dataset(struct session *s, const char *path)
{
	return CALL(s, H5Dopen2(s->h5, path, H5P_DEFAULT));
}

/* n: for the rank of the dataset. */
static void get_shape(struct session *s, hid_t dataset, hsize_t *n)
{
	const hid_t space = CALL(s, H5Dget_space(dataset));
	CALL(s, H5Sget_simple_extent_dims(space, n, NULL));
	end(s, space, H5Sclose);
}

static hsize_t size_of(struct session *s, hid_t dataset)
{
	hsize_t n = 0;
	get_shape(s, dataset, &n);
	return n;
}

/* Returns how many numbers the dataset has; at most max. */
static uint64_t get_numbers(struct session *s, const char *path, uint64_t *out, uint64_t max)
{
	const hid_t d = open_dataset(s, path);
	const hsize_t n = size_of(s, d);
	if (n > max && !s->f.rc)
		s->f.rc = err_set(&s->f.err, -EIO, "%s has %zu elements", path, (size_t)n);
	CALL(s, H5Dread(d, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
	end(s, d, H5Dclose);
	return n;
}

static void write_box(struct session *s, hid_t d, hid_t type, int rank, const hsize_t *at,
		      const hsize_t *n, const void *v)
{
	const hid_t file = CALL(s, H5Dget_space(d));
	const hid_t memory = CALL(s, H5Screate_simple(rank, n, NULL));
	CALL(s, H5Sselect_hyperslab(file, H5S_SELECT_SET, at, NULL, n, NULL));
	CALL(s, H5Dwrite(d, type, memory, file, H5P_DEFAULT, v));
	end(s, memory, H5Sclose);
	end(s, file, H5Sclose);
}

static void write_elements(struct session *s, hid_t d, hid_t type, hsize_t at, hsize_t n,
			   const void *v)
{
	write_box(s, d, type, 1, &at, &n, v);
}

/* Writes what differs, as one range for each chunk. */
static void set_numbers(struct session *s, hid_t d, const uint64_t *from, const uint64_t *to,
			uint64_t n)
{
	hid_t type = CALL(s, H5Tcopy(H5T_NATIVE_UINT64));
	for (uint64_t chunk = 0; chunk < n; chunk += CONTENT_CHUNK) {
		uint64_t at = chunk, after = chunk + CONTENT_CHUNK < n ? chunk + CONTENT_CHUNK : n;
		while (at < after && from[at] == to[at])
			at++;
		while (at < after && from[after - 1] == to[after - 1])
			after--;
		if (at < after)
			write_elements(s, d, type, at, after - at, to + at);
	}
	end(s, type, H5Tclose);
}

static void change_numbers(struct session *s, const char *path, const uint64_t *from,
			   const uint64_t *to, uint64_t n)
{
	if (memcmp(from, to, n * sizeof(*to)) == 0)
		return;
	const hid_t d = open_dataset(s, path);
	set_numbers(s, d, from, to, n);
	end(s, d, H5Dclose);
}

static void change_rows(struct session *s, const struct content *from, const struct content *to)
{
	/* New rows are zeros. */
	struct content old = *from;
	if (from->nrows == to->nrows)
		return;
	for (uint64_t i = from->nrows; i < to->nrows; i++)
		old.rows[i] = 0;
	const hid_t d = open_dataset(s, "rows");
	const hsize_t n = to->nrows;
	CALL(s, H5Dset_extent(d, &n));
	set_numbers(s, d, old.rows, to->rows, n);
	end(s, d, H5Dclose);
}

static void get_words(struct session *s, uint64_t out[CONTENT_WORDS])
{
	char *texts[CONTENT_WORDS] = {NULL};
	const hid_t d = open_dataset(s, "words"), type = text_type(s);
	const hsize_t n = size_of(s, d);
	if (n != CONTENT_WORDS && !s->f.rc)
		s->f.rc = err_set(&s->f.err, -EIO, "/words has %zu elements", (size_t)n);
	CALL(s, H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts));
	for (unsigned int i = 0; i < CONTENT_WORDS; i++)
		out[i] = take_text(s, texts[i]);
	end(s, type, H5Tclose);
	end(s, d, H5Dclose);
}

static void set_words(struct session *s, const uint64_t from[CONTENT_WORDS],
		      const uint64_t to[CONTENT_WORDS])
{
	if (memcmp(from, to, CONTENT_WORDS * sizeof(*to)) == 0)
		return;
	const hid_t d = open_dataset(s, "words"), type = text_type(s);
	for (unsigned int i = 0; i < CONTENT_WORDS; i++) {
		char word[WORD_MAX];
		const char *text = word;
		word_of(to[i], word);
		if (from[i] != to[i])
			write_elements(s, d, type, i, 1, &text);
	}
	end(s, type, H5Tclose);
	end(s, d, H5Dclose);
}

enum layout { LAYOUT_CHUNKS, LAYOUT_DEFLATE, LAYOUT_CONTIGUOUS, LAYOUTS };

static hid_t add_space(struct session *s, const char *path, hid_t type, hid_t space,
		       const hsize_t *chunk, enum layout layout)
{
	const hid_t create = CALL(s, H5Pcreate(H5P_DATASET_CREATE));
	if (layout != LAYOUT_CONTIGUOUS)
		CALL(s, H5Pset_chunk(create, H5Sget_simple_extent_ndims(space), chunk));
	if (layout == LAYOUT_DEFLATE)
		CALL(s, H5Pset_deflate(create, 1));
	const hid_t d =
		CALL(s, H5Dcreate2(s->h5, path, type, space, H5P_DEFAULT, create, H5P_DEFAULT));
	end(s, create, H5Pclose);
	end(s, space, H5Sclose);
	return d;
}

static hid_t add_dataset(struct session *s, const char *path, hid_t type, hsize_t n, hsize_t max,
			 enum layout layout)
{
	const hsize_t chunk = CONTENT_CHUNK;
	return add_space(s, path, type, CALL(s, H5Screate_simple(1, &n, &max)), &chunk, layout);
}

static void add_numbers(struct session *s, const char *path, const uint64_t *v, hsize_t n,
			hsize_t max, enum layout layout)
{
	hid_t type = CALL(s, H5Tcopy(H5T_STD_U64LE));
	const hid_t d = add_dataset(s, path, type, n, max, layout);
	write_elements(s, d, type, 0, n, v);
	end(s, d, H5Dclose);
	end(s, type, H5Tclose);
}

/* ---- a dataset of two dimensions ---- */

enum { SIDE = CONTENT_GRID_CHUNK, GRID_MAX = CONTENT_GRID * SIDE };

static void get_grid(struct session *s, struct content_chunks *out)
{
	uint64_t v[GRID_MAX * GRID_MAX] = {0};
	hsize_t n[2] = {0};
	const hid_t d = open_dataset(s, "grid");
	get_shape(s, d, n);
	if ((n[0] % SIDE || n[1] % SIDE || n[0] > GRID_MAX || n[1] > GRID_MAX) && !s->f.rc)
		s->f.rc = err_set(&s->f.err, -EIO, "/grid has %zu x %zu elements", (size_t)n[0],
				  (size_t)n[1]);
	CALL(s, H5Dread(d, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, v));
	end(s, d, H5Dclose);
	*out = (struct content_chunks){.n = {n[0] / SIDE, n[1] / SIDE}};
	for (hsize_t i = 0; i < n[0] * n[1] && !s->f.rc; i++) {
		const hsize_t row = i / n[1], column = i % n[1];
		const uint64_t first = v[(row - row % SIDE) * n[1] + column - column % SIDE];
		out->value[row / SIDE][column / SIDE] = first;
		if (v[i] != first)
			s->f.rc = err_set(&s->f.err, -EIO, "/grid has a chunk that nobody wrote");
	}
}

static void change_grid(struct session *s, const struct content_chunks *from,
			const struct content_chunks *to)
{
	if (memcmp(from, to, sizeof(*to)) == 0)
		return;
	const hsize_t n[2] = {to->n[0] * SIDE, to->n[1] * SIDE}, side[2] = {SIDE, SIDE};
	const hid_t d = open_dataset(s, "grid"), type = CALL(s, H5Tcopy(H5T_NATIVE_UINT64));
	CALL(s, H5Dset_extent(d, n));
	for (hsize_t i = 0; i < to->n[0]; i++)
		for (hsize_t k = 0; k < to->n[1]; k++) {
			const uint64_t v = to->value[i][k], all[SIDE * SIDE] = {v, v, v, v};
			const hsize_t at[2] = {i * SIDE, k * SIDE};
			if (from->value[i][k] != v)
				write_box(s, d, type, 2, at, side, all);
		}
	end(s, type, H5Tclose);
	end(s, d, H5Dclose);
}

static void add_grid(struct session *s, const struct content_chunks *grid)
{
	static const hsize_t side[2] = {SIDE, SIDE}, max[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
	static const struct content_chunks one = {.n = {1, 1}};
	const hid_t type = CALL(s, H5Tcopy(H5T_STD_U64LE));
	const hid_t space = CALL(s, H5Screate_simple(2, side, max));
	end(s, add_space(s, "grid", type, space, side, LAYOUT_CHUNKS), H5Dclose);
	end(s, type, H5Tclose);
	change_grid(s, &one, grid);
}

/* ---- links ---- */

static bool has_link(struct session *s, const char *path)
{
	return CALL(s, H5Lexists(s->h5, path, H5P_DEFAULT)) > 0;
}

static void remove_link(struct session *s, const char *path)
{
	CALL(s, H5Ldelete(s->h5, path, H5P_DEFAULT));
}

static void add_group(struct session *s, const char *path)
{
	end(s, CALL(s, H5Gcreate2(s->h5, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)), H5Gclose);
}

static void change_groups(struct session *s, unsigned int from, unsigned int to)
{
	for (unsigned int i = 0; i < CONTENT_LINKS; i++) {
		char name[NAME_LEN];
		const unsigned int bit = 1u << i;
		snprintf(name, sizeof(name), "n%u", i);
		if (from & bit & ~to)
			remove_link(s, name);
		else if (to & bit & ~from)
			add_group(s, name);
	}
}

static const char *const extra_paths[CONTENT_EXTRAS] = {"g/e0", "e1"};

static void move_link(struct session *s, const char *from, const char *to)
{
	CALL(s, H5Lmove(s->h5, from, s->h5, to, H5P_DEFAULT, H5P_DEFAULT));
}

static void swap_extras(struct session *s)
{
	move_link(s, extra_paths[0], "g/aside");
	move_link(s, extra_paths[1], extra_paths[0]);
	move_link(s, "g/aside", extra_paths[1]);
}

static void change_extras(struct session *s, const uint64_t from[CONTENT_EXTRAS],
			  const uint64_t to[CONTENT_EXTRAS])
{
	if (from[0] && from[1] && to[0] == from[1] && to[1] == from[0] && from[0] != from[1]) {
		swap_extras(s);
		return;
	}
	for (unsigned int i = 0; i < CONTENT_EXTRAS; i++) {
		const unsigned int other = 1 - i;
		const uint64_t v[CONTENT_CHUNK] = {to[i], to[i], to[i], to[i]};
		if (from[i] && !to[i] && !from[other] && to[other] == from[i]) {
			move_link(s, extra_paths[i], extra_paths[other]);
			return;
		}
		if (from[i] == to[i])
			continue;
		if (from[i])
			remove_link(s, extra_paths[i]);
		if (to[i] && to[i] != from[other])
			add_numbers(s, extra_paths[i], v, CONTENT_CHUNK, CONTENT_CHUNK,
				    (enum layout)(to[i] % LAYOUTS));
	}
}

static void add_alien(struct session *s)
{
	const hsize_t n = CONTENT_CHUNK;
	hid_t type = CALL(s, H5Tcopy(H5T_STD_U64LE));
	const hid_t space = CALL(s, H5Screate_simple(1, &n, NULL));
	const hid_t create = CALL(s, H5Pcreate(H5P_DATASET_CREATE));
	CALL(s, H5Pset_external(create, "alien.raw", 0, n * sizeof(uint64_t)));
	end(s, CALL(s, H5Dcreate2(s->h5, "alien", type, space, H5P_DEFAULT, create, H5P_DEFAULT)),
	    H5Dclose);
	end(s, create, H5Pclose);
	end(s, space, H5Sclose);
	end(s, type, H5Tclose);
}

static uint64_t get_extra(struct session *s, const char *path)
{
	uint64_t v[CONTENT_CHUNK] = {0};
	if (!has_link(s, path))
		return 0;
	get_numbers(s, path, v, CONTENT_CHUNK);
	for (unsigned int i = 0; i < CONTENT_CHUNK && !s->f.rc; i++)
		if (!v[i] || v[i] != v[0])
			s->f.rc = err_set(&s->f.err, -EIO, "%s has numbers that nobody has written",
					  path);
	return v[0];
}

/* ---- sessions ---- */

static int result(const struct session *s, struct err *err)
{
	if (s->f.rc && err)
		err_copy(err, &s->f.err);
	return s->f.rc;
}

static hid_t access_list(struct session *s)
{
	const hid_t list = CALL(s, H5Pcreate(H5P_FILE_ACCESS));
	CALL(s, h5_driver_use(list, &s->f) ? 0 : -1);
	CALL(s, H5Pset_fclose_degree(list, H5F_CLOSE_STRONG));
	CALL(s, H5Pset_libver_bounds(list, s->opt.latest ? H5F_LIBVER_LATEST : H5F_LIBVER_EARLIEST,
				     H5F_LIBVER_LATEST));
	return list;
}

int session_open(struct session **out, struct engine_file *f, enum session_mode mode,
		 const struct session_options *opt, struct err *err)
{
	struct session *s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->f.file = f;
	s->f.max_writes = opt->writes;
	s->f.driver = s->h5 = H5I_INVALID_HID;
	s->opt = *opt;
	const hid_t list = access_list(s);
	s->h5 = mode == SESSION_CREATE
			? CALL(s, H5Fcreate("file", H5F_ACC_TRUNC, H5P_DEFAULT, list))
			: CALL(s,
			       H5Fopen("file", mode == SESSION_READ ? H5F_ACC_RDONLY : H5F_ACC_RDWR,
				       list));
	end(s, list, H5Pclose);
	if (s->f.rc)
		return session_close(s, err);
	*out = s;
	return 0;
}

int session_close(struct session *s, struct err *err)
{
	end(s, s->h5, H5Fclose);
	end(s, s->f.driver, H5FDunregister);
	const int rc = result(s, err);
	free(s);
	return rc;
}

int session_fill(struct session *s, const struct content *c, struct err *err)
{
	static const uint64_t no_words[CONTENT_WORDS];
	static const uint64_t no_extras[CONTENT_EXTRAS];
	add_number(s, "uid", c->uid);
	add_number(s, "count", c->count);
	add_number(s, "tag", c->tag);
	add_numbers(s, "x", c->x, CONTENT_CELLS, CONTENT_CELLS, LAYOUT_CHUNKS);
	add_numbers(s, "rows", c->rows, c->nrows, H5S_UNLIMITED, LAYOUT_CHUNKS);
	const hid_t type = text_type(s);
	end(s, add_dataset(s, "words", type, CONTENT_WORDS, CONTENT_WORDS, LAYOUT_CHUNKS),
	    H5Dclose);
	end(s, type, H5Tclose);
	add_grid(s, &c->grid);
	add_group(s, "g");
	add_group(s, "g/empty");
	if (c->has_spare)
		add_numbers(s, "g/spare", c->spare, CONTENT_CELLS, CONTENT_CELLS, LAYOUT_CHUNKS);
	change_groups(s, 0, c->links);
	set_note(s, 0, c->note);
	set_words(s, no_words, c->words);
	change_extras(s, no_extras, c->extras);
	return result(s, err);
}

int session_get(struct session *s, struct content *out, struct err *err)
{
	*out = (struct content){.uid = get_number(s, "uid"),
				.count = get_number(s, "count"),
				.tag = get_number(s, "tag"),
				.note = get_note(s)};
	for (unsigned int i = 0; i < CONTENT_LINKS; i++) {
		char name[NAME_LEN];
		snprintf(name, sizeof(name), "n%u", i);
		out->links |= has_link(s, name) ? 1u << i : 0;
	}
	get_numbers(s, "x", out->x, CONTENT_CELLS);
	out->nrows = get_numbers(s, "rows", out->rows, CONTENT_ROWS);
	get_words(s, out->words);
	get_grid(s, &out->grid);
	out->has_spare = has_link(s, "g/spare");
	if (out->has_spare)
		get_numbers(s, "g/spare", out->spare, CONTENT_CELLS);
	for (unsigned int i = 0; i < CONTENT_EXTRAS; i++)
		out->extras[i] = get_extra(s, extra_paths[i]);
	return result(s, err);
}

void session_get_store(struct session *s, uint64_t *version, uint64_t *x, unsigned int n)
{
	*version = CALL(s, H5Aexists(s->h5, "version")) > 0 ? get_number(s, "version") : 0;
	get_numbers(s, "x", x, n);
}

int session_set(struct session *s, const struct content *from, const struct content *to,
		struct err *err)
{
	if (from->count != to->count)
		set_number(s, "count", to->count);
	if (from->tag != to->tag)
		set_number(s, "tag", to->tag);
	set_note(s, from->note, to->note);
	change_groups(s, from->links, to->links);
	change_numbers(s, "x", from->x, to->x, CONTENT_CELLS);
	change_rows(s, from, to);
	set_words(s, from->words, to->words);
	change_grid(s, &from->grid, &to->grid);
	if (from->has_spare && !to->has_spare)
		remove_link(s, "g/spare");
	else if (from->has_spare)
		change_numbers(s, "g/spare", from->spare, to->spare, CONTENT_CELLS);
	change_extras(s, from->extras, to->extras);
	if (to->is_alien)
		add_alien(s);
	return result(s, err);
}

int session_flush(struct session *s, enum session_flush flush, struct err *err)
{
	if (flush)
		CALL(s, H5Fflush(s->h5, H5F_SCOPE_LOCAL));
	if (!s->f.rc && flush == SESSION_FLUSH)
		s->f.rc = engine_flush(s->f.file, &s->f.err);
	if (!s->f.rc && flush == SESSION_SYNC)
		s->f.rc = engine_sync(s->f.file, &s->f.err);
	return result(s, err);
}

int session_read(struct engine_file *f, struct content *out, struct err *err)
{
	const struct session_options opt = {.latest = false};
	struct session *s;
	int rc = session_open(&s, f, SESSION_READ, &opt, err);
	if (rc)
		return rc;
	session_get(s, out, NULL);
	return session_close(s, err);
}

unsigned int session_count(void)
{
	pthread_mutex_lock(&library);
	const ssize_t n = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
	pthread_mutex_unlock(&library);
	return n < 0 ? 1 : (unsigned int)n;
}
