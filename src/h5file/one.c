/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One dataset, found by its path: see h5file/one.h. The path is followed link by link. Only the
 * objects on the way get numbers in the tree, and the last of them is the dataset. Nothing is
 * claimed, because most of the file is not read.
 */
#include <h5file/one.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <h5/claims.h>

#include "dataset.h"
#include "group.h"
#include "objects.h"

enum {
	SOFT_LINKS_MAX = 16,
	LINKS_MAX = 4096,     /* of one path */
	PATH_BYTES = 1 << 20, /* bytes of what is left of the path */
	SCRATCH_LIMIT = 256 << 20,
};

struct h5file_one {
	struct h5file *f;
	uint32_t number; /* of the dataset */
};

/* The way through the file. */
struct way {
	struct h5file *f;
	struct bytes rest; /* the rest of the path, NUL-terminated */
	size_t at;	   /* in rest */
	const char *path;  /* the path that was followed */
	uint64_t addr;	   /* of the object at this path */
	unsigned int soft, links;
};

static int read_header(struct h5file *f, uint64_t addr, struct header *h, enum object_kind *kind,
		       struct err *err)
{
	h->scratch = arena_new(SCRATCH_LIMIT);
	if (!h->scratch)
		return err_no_memory(err);
	int rc = h5_ohdr_decode(&f->file, addr, h->scratch, &h->h, err);
	if (!rc && !h5_ohdr_kind(&h->h, kind))
		rc = err_set(err, -EIO, "the object header is not that of an object");
	return rc ? err_wrap(err, rc, "%s", h->path) : 0;
}

/* Cuts off the next name of the path and returns it, or NULL if the path has ended. */
static const char *next_name(struct way *w)
{
	char *rest = (char *)w->rest.data + w->at;
	do {
		rest += strspn(rest, "/");
		char *end = rest + strcspn(rest, "/");
		w->at = (size_t)(end - (char *)w->rest.data) + (*end == '/');
		*end = '\0';
		if (strcmp(rest, ".") != 0)
			return *rest ? rest : NULL;
		rest = (char *)w->rest.data + w->at;
	} while (true);
}

/* Puts the path of a soft link in front of what is left. */
static int enter_soft(struct way *w, const char *path, struct err *err)
{
	auto_bytes struct bytes rest = {0};
	const char *left = (const char *)w->rest.data + w->at;
	if (++w->soft > SOFT_LINKS_MAX)
		return err_set(err, -EIO, "%s: more than %d soft links", w->path, SOFT_LINKS_MAX);
	if (strlen(path) + strlen(left) > PATH_BYTES)
		return err_set(err, -EIO, "%s: the path is too long", w->path);
	if (bytes_append(&rest, path, strlen(path)) || bytes_append(&rest, "/", 1) ||
	    bytes_append(&rest, left, strlen(left) + 1))
		return err_no_memory(err);
	const struct bytes before = w->rest;
	w->rest = rest;
	rest = before;
	w->at = 0;
	if (path[0] == '/') {
		w->addr = w->f->file.root;
		w->path = "/";
	}
	return 0;
}

static int enter(struct way *w, const struct group_link *l, struct err *err)
{
	if (l->link.cls == LINK_SOFT)
		return enter_soft(w, l->link.path, err);
	if (l->link.cls != LINK_HARD)
		return err_set(err, -EOPNOTSUPP, "%s: link \"%s\" leads to another file", w->path,
			       l->link.name);
	w->path = objects_path(w->f, w->path, l->link.name);
	w->addr = l->addr;
	return w->path ? 0 : err_no_memory(err);
}

/* Follows the link with this name. */
static int step(struct way *w, const char *name, struct err *err)
{
	struct header h = {.path = w->path};
	struct group_link l = {.addr = H5_UNDEF};
	enum object_kind kind = OBJECT_GROUP;
	bool found = false;
	if (++w->links > LINKS_MAX)
		return err_set(err, -EIO, "%s: a path of more than %d links", w->path, LINKS_MAX);
	int rc = read_header(w->f, w->addr, &h, &kind, err);
	if (!rc && kind == OBJECT_GROUP) {
		rc = group_find(w->f, &h, name, &found, &l, err);
		if (rc)
			err_wrap(err, rc, "%s", w->path);
	}
	arena_free(h.scratch);
	if (!rc && !found)
		rc = err_set(err, -ENOENT, "%s has no link \"%s\"", w->path, name);
	return rc ? rc : enter(w, &l, err);
}

/* Reads the dataset at the end of the way. */
static int read_dataset(struct h5file_one *one, const struct way *w, struct err *err)
{
	struct h5file *f = one->f;
	struct header h = {.path = w->path};
	enum object_kind kind = OBJECT_DATASET;
	int rc = objects_number(f, w->addr, w->path, NULL, &h.number, err);
	if (rc)
		return rc;
	f->datasets = calloc(h.number + (size_t)1, sizeof(struct dataset_info *));
	if (!f->datasets)
		return err_no_memory(err);
	f->ndatasets = h.number + 1;
	one->number = h.number;
	rc = read_header(f, w->addr, &h, &kind, err);
	if (!rc && kind != OBJECT_DATASET)
		rc = err_set(err, -EINVAL, "%s is not a dataset", w->path);
	if (!rc) {
		rc = dataset_read(f, &h, &f->datasets[h.number], err);
		if (rc)
			err_wrap(err, rc, "%s", w->path);
	}
	arena_free(h.scratch);
	return rc;
}

static int open_path(struct h5file_one *one, const char *path, struct err *err)
{
	struct way w = {.f = one->f, .path = "/"};
	int rc = h5file_start(one->f, err);
	w.addr = one->f->file.root;
	if (!rc && bytes_append(&w.rest, path, strlen(path) + 1))
		rc = err_no_memory(err);
	for (const char *name; !rc && (name = next_name(&w));)
		rc = step(&w, name, err);
	if (!rc)
		rc = read_dataset(one, &w, err);
	bytes_release(&w.rest);
	return rc;
}

int h5file_one_open(struct source *source, const char *path, struct h5file_one **out,
		    struct err *err)
{
	struct err why = ERR_INIT;
	struct h5file_one *one = calloc(1, sizeof(*one));
	int rc = 0;
	*out = NULL;
	if (one)
		one->f = h5file_new(source, NULL);
	if (!one || !one->f)
		rc = err_no_memory(&why);
	if (!rc) {
		h5_claims_free(one->f->file.claims);
		one->f->file.claims = NULL;
		rc = open_path(one, path, &why);
	}
	if (!rc) {
		*out = one;
		return 0;
	}
	h5file_one_close(one);
	if (err)
		err_copy(err, &why);
	return rc;
}

void h5file_one_close(struct h5file_one *one)
{
	if (!one)
		return;
	h5file_close(one->f);
	free(one);
}

const struct h5file_dataset *h5file_one_dataset(const struct h5file_one *one)
{
	return h5file_dataset(one->f, one->number);
}

uint64_t h5file_one_base(const struct h5file_one *one)
{
	return h5file_base(one->f);
}

struct search {
	uint64_t number;
	bool found;
	struct h5file_chunk chunk;
};

static int take(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct search *s = ctx;
	if (s->found)
		return err_set(err, -EIO, "the index has chunk %" PRIu64 " twice", s->number);
	s->found = true;
	s->chunk = *chunk;
	return 0;
}

int h5file_one_chunk(struct h5file_one *one, uint64_t number, bool *stored,
		     struct h5file_chunk *out, struct err *err)
{
	struct search s = {.number = number};
	int rc = number < UINT64_MAX
			 ? h5file_chunks(one->f, one->number, number, number + 1, take, &s, err)
			 : 0;
	*stored = !rc && s.found;
	if (*stored)
		*out = s.chunk;
	return rc;
}
