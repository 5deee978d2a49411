/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk: objects are read in the order of their numbers, and the links of a group number the
 * objects that follow. So there is no recursion over the hierarchy, and groups that contain each
 * other are read once. Committed datatypes without a link come last.
 *
 * A valid file has each byte of metadata in one structure, which is read a few times at most. The
 * walk ends if it has read many times the size of the file, as it does if thousands of objects or
 * attributes of a damaged file share the same bytes. See struct h5_work.
 */
#include "walk.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "attr.h"
#include "dataset.h"
#include "group.h"
#include "objects.h"
#include "values.h"

enum {
	SCRATCH_LIMIT = 256 << 20,
	CHARGE_INTERVAL = 64, /* objects between two changes of the charge */
};

static const int64_t second_ns = 1000000000;

/* Reads the times, which headers of version 2 have; older objects have a message at most. */
static int read_times(struct h5file *f, const struct header *h, struct object *o, struct err *err)
{
	const struct h5_msg *new = h5_ohdr_find(&h->h, H5_MSG_MTIME);
	const struct h5_msg *old = h5_ohdr_find(&h->h, H5_MSG_MTIME_OLD);
	const struct h5_msg *m = new ? new : old;
	if (h->h.has_times) {
		o->created_ns = h->h.btime * second_ns;
		o->modified_ns = h->h.mtime * second_ns;
	}
	if (!m)
		return 0;
	struct cursor body;
	uint32_t seconds = 0;
	int rc = header_body(f, h, m, &body, NULL, err);
	if (!rc)
		rc = new ? h5_mtime_decode(&body, &seconds, err)
			 : h5_mtime_old_decode(&body, &seconds, err);
	if (!rc)
		o->modified_ns = seconds * second_ns;
	return rc;
}

static int read_datatype(struct h5file *f, const struct header *h, struct err *err)
{
	const struct dtype *type;
	uint64_t committed;
	int rc = header_type(f, h, &type, &committed, err);
	if (rc)
		return rc;
	struct object *o = tree_edit(f->tree, h->number);
	o->kind = OBJECT_DATATYPE;
	o->datatype = type;
	return 0;
}

/* Enters the dataset in the table by number. */
static int add_dataset(struct h5file *f, uint32_t number, struct dataset_info *info,
		       struct err *err)
{
	const uint32_t numbers = tree_numbers(f->tree);
	if (number >= f->ndatasets) {
		uint32_t n = f->ndatasets ? f->ndatasets : 64;
		while (n <= number)
			n = 2 * n > numbers && numbers > number ? numbers : 2 * n;
		struct dataset_info **all =
			reallocarray(f->datasets, n, sizeof(struct dataset_info *));
		if (!all)
			return err_no_memory(err);
		memset(all + f->ndatasets, 0, (n - f->ndatasets) * sizeof(struct dataset_info *));
		f->datasets = all;
		f->ndatasets = n;
	}
	f->datasets[number] = info;
	return 0;
}

/* Reads the comment. One that cannot be read is left out, because the object does not depend on it.
 * No version of libhdf5 shares these messages. */
static int read_comment(struct h5file *f, const struct header *h, struct object *o)
{
	const struct h5_msg *m = h5_ohdr_find(&h->h, H5_MSG_COMMENT);
	struct err why = ERR_INIT;
	if (!m)
		return 0;
	struct cursor body = cursor_of(m->body, m->len);
	int rc = m->flags & H5_MSG_SHARED
			 ? err_set(&why, -EOPNOTSUPP, "comment: a shared message")
			 : h5_comment_decode(&body, tree_arena(f->tree), &o->comment, &why);
	if (rc == -ENOMEM)
		return rc;
	if (!rc && !o->comment[0])
		o->comment = NULL;
	if (!rc)
		return 0;
	err_wrap(&why, rc, "the comment is left out");
	h5file_note(f, H5FILE_UNSUPPORTED, h->number, &why);
	return 0;
}

static int read_object(struct h5file *f, struct header *h, struct err *err)
{
	enum object_kind kind;
	struct dataset_info *info = NULL;
	int rc = h5_ohdr_decode(&f->file, h5file_address(f, h->number), h->scratch, &h->h, err);
	if (rc)
		return rc;
	if (!h5_ohdr_kind(&h->h, &kind))
		return err_set(err, -EIO, "the object header is not that of an object");
	if (kind == OBJECT_GROUP)
		rc = group_read(f, h, err);
	else if (kind == OBJECT_DATASET)
		rc = dataset_read(f, h, &info, err);
	else
		rc = read_datatype(f, h, err);
	if (!rc && info)
		rc = add_dataset(f, h->number, info, err);
	if (!rc)
		rc = read_times(f, h, tree_edit(f->tree, h->number), err);
	if (!rc)
		rc = attr_read(f, h, err);
	if (!rc && read_comment(f, h, tree_edit(f->tree, h->number)))
		rc = err_no_memory(err);
	if (rc)
		return err_wrap(err, rc, "object header at %" PRIu64, h5file_address(f, h->number));
	objects_set_header(f, h->number, h->h.version, h->h.has_times ? h->h.btime : 0);
	return 0;
}

static int read_number(struct h5file *f, uint32_t number, struct err *err)
{
	struct header h = {.number = number, .path = tree_object(f->tree, number)->o.id};
	h.scratch = arena_new(SCRATCH_LIMIT);
	if (!h.scratch)
		return err_no_memory(err);
	const int rc = read_object(f, &h, err);
	arena_free(h.scratch);
	return rc;
}

/* Returns 1 if the caller knows the dataset at this address, 0 if not, or a negative errno. */
static int is_known(const struct h5file *f, uint32_t number, struct err *err)
{
	if (!f->known || f->file.base)
		return 0;
	return f->known->is_known(f->known->ctx, h5file_address(f, number), err);
}

/* Reads an object, leaves it unread, or marks it as broken. */
static int visit(struct h5file *f, uint32_t number, struct err *err)
{
	const char *path = tree_object(f->tree, number)->o.id;
	int rc = is_known(f, number, err);
	if (rc < 0)
		return rc;
	if (rc) {
		tree_leave_unread(f->tree, number);
		return 0;
	}
	rc = read_number(f, number, err);
	if (!is_local(rc))
		return rc;
	if (number == 0)
		return err_wrap(err, rc, "root group");
	h5file_report(f, number, err);
	err_clear(err);
	tree_break(f->tree, number, path);
	if (number < f->ndatasets)
		f->datasets[number] = NULL;
	return 0;
}

/* Reads the objects from a number on. */
static int visit_from(struct h5file *f, uint32_t number, struct err *err)
{
	int rc = 0;
	for (; !rc && number < tree_numbers(f->tree); number++) {
		rc = visit(f, number, err);
		if (!rc && !f->work.left)
			rc = h5_file_spend(&f->file, 1, err);
		if (!rc && number % CHARGE_INTERVAL == 0)
			rc = objects_charge(f, err);
	}
	return rc;
}

static void note_dangling(struct h5file *f, uint32_t number, const char *what, uint64_t n,
			  uint64_t addr)
{
	struct err why = ERR_INIT;
	if (!n)
		return;
	err_set(&why, -EIO, "%s: %" PRIu64 " reference(s) lead to no object, the first to %" PRIu64,
		what, n, addr);
	h5file_note(f, H5FILE_WARNING, number, &why);
}

/* Resolves the references in the attributes and the fill value of an object. */
static int resolve(struct h5file *f, uint32_t number, struct err *err)
{
	struct object *o = tree_edit(f->tree, number);
	uint64_t n, addr;
	int rc = 0;
	if (tree_object(f->tree, number)->broken)
		return 0;
	for (uint32_t i = 0; !rc && i < o->nattrs; i++) {
		struct attribute *a = &o->attrs[i];
		rc = values_resolve(f, a->type, &a->value, a->space.nelems, &n, &addr, err);
		if (!rc)
			note_dangling(f, number, a->name, n, addr);
	}
	if (rc || o->kind != OBJECT_DATASET || !o->dataset.fill_defined)
		return rc;
	rc = values_resolve(f, o->dataset.type, &o->dataset.fill, 1, &n, &addr, err);
	if (!rc)
		note_dangling(f, number, "fill value", n, addr);
	return rc;
}

int walk_file(struct h5file *f, struct err *err)
{
	uint32_t root, added = 0;
	int rc = objects_number(f, f->file.root, "/", NULL, &root, err);
	if (!rc)
		rc = visit_from(f, root, err);
	do {
		const uint32_t next = tree_numbers(f->tree);
		if (!rc)
			rc = objects_add_unlinked(f, &added, err);
		if (!rc)
			rc = visit_from(f, next, err);
	} while (!rc && added);
	for (uint32_t i = 0; !rc && i < tree_numbers(f->tree); i++)
		rc = resolve(f, i, err);
	if (rc)
		return rc;
	objects_set_committed(f);
	bytes_release(&f->shares);
	rc = tree_finish(f->tree, err);
	return rc ? rc : objects_charge(f, err);
}

int h5file_read(struct h5file *f, uint32_t number, struct err *err)
{
	if (!tree_object(f->tree, number)->unread)
		return 0;
	f->shared = h5_shared_new(&f->file);
	int rc = f->shared ? read_number(f, number, err) : err_no_memory(err);
	if (!rc && tree_object(f->tree, number)->o.kind != OBJECT_DATASET)
		rc = err_set(err, -EIO, "the object at %" PRIu64 " is no dataset",
			     h5file_address(f, number));
	if (!rc)
		rc = resolve(f, number, err);
	h5_shared_free(f->shared);
	f->shared = NULL;
	bytes_release(&f->shares);
	if (!rc)
		rc = objects_charge(f, err);
	if (!rc) {
		tree_mark_read(f->tree, number);
		return 0;
	}
	tree_leave_unread(f->tree, number);
	if (number < f->ndatasets)
		f->datasets[number] = NULL;
	return rc;
}
