/* SPDX-License-Identifier: Apache-2.0 */
/* The base of an update: see update/update.h. */
#include "update_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int read_image(void *ctx, uint64_t addr, void *buf, size_t n, struct err *err)
{
	const struct update_base *b = ctx;
	for (size_t done = 0; done < n;) {
		const ssize_t got = image_read(b->image, b->stream, (uint8_t *)buf + done, n - done,
					       image_base(b->image) + addr + done, NULL, err);
		if (got <= 0)
			return got ? (int)got : err_set(err, -EIO, "the image is too short");
		done += (size_t)got;
	}
	return 0;
}

struct update_base *update_base_new(struct domain *d, struct image *image)
{
	struct update_base *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->domain = domain_ref(d);
	b->image = image_ref(image);
	b->stream = image_stream_new(image);
	b->bytes = (struct source){
		.size = image_size(image) - image_base(image), .read_at = read_image, .ctx = b};
	b->is_image = true;
	snprintf(b->document, sizeof(b->document), "%s", domain_document(d)->etag);
	return b;
}

void update_base_free(struct update_base *b)
{
	if (!b)
		return;
	scan_free(b->scan);
	scan_free(b->next);
	bytes_release(&b->targets);
	bytes_release(&b->earlier);
	free(b->growth);
	image_stream_free(b->stream);
	image_unref(b->image);
	domain_unref(b->domain);
	free(b);
}

bool update_is_pending(const struct update_base *b)
{
	return b->next;
}

/* Finds an object of the domain in the scan of the image, and gives it its id and version. */
static int adopt(struct update_base *b, uint32_t number, struct err *err)
{
	const struct object *o = &tree_object(domain_tree(b->domain), number)->o;
	const void *text;
	size_t len;
	const uint32_t found = h5file_at(b->scan->file, image_header(b->image, number));
	if (found == OBJECT_NONE || tree_object(b->scan->tree, found)->o.kind != o->kind)
		return err_set(err, -EIO, "object %s is not where its image has it", o->id);
	b->scan->opened[found] = number;
	b->scan->version[found] = domain_object_version(b->domain, number, &text, &len);
	tree_edit(b->scan->tree, found)->id = o->id;
	if (o->kind != OBJECT_DATASET)
		return 0;
	if (!scan_is_unread(b->scan, found))
		return scan_adopt_dataset(b->scan, found, domain_schema(b->domain), &o->dataset,
					  err);
	scan_adopt_unread(b->scan, found, &o->dataset);
	return 0;
}

const struct object *update_opened(const struct update_base *b, const struct scan *s,
				   uint32_t number)
{
	const uint32_t opened = s->opened[number];
	return opened == OBJECT_NONE ? NULL : &tree_object(domain_tree(b->domain), opened)->o;
}

bool update_base_has(const struct update_base *b, uint32_t number)
{
	for (uint32_t i = 0; b->scan && i < tree_count(b->scan->tree); i++)
		if (b->scan->opened[tree_nth(b->scan->tree, i)] == number)
			return true;
	return !b->scan;
}

int update_base_scan(struct update_base *b, const struct env *env, struct err *err)
{
	const struct tree *t = domain_tree(b->domain);
	if (b->scan)
		return 0;
	struct update_known all = {.base = b};
	const struct h5file_known known = {.is_known = update_is_known, .ctx = &all};
	int rc = scan_open(env, &b->bytes, false, &known, &b->scan, err);
	if (!rc)
		tree_edit(b->scan->tree, 0)->group.user_block = tree_user_block(t);
	for (uint32_t i = 0; !rc && i < tree_count(t); i++)
		rc = adopt(b, tree_nth(t, i), err);
	b->growth = rc ? NULL : calloc((size_t)tree_numbers(b->scan->tree) + 1, sizeof(*b->growth));
	if (!rc && !b->growth)
		rc = err_no_memory(err);
	if (!rc)
		return 0;
	scan_free(b->scan);
	b->scan = NULL;
	return err_wrap(err, rc, "the file of the domain");
}

void update_base_begin(struct update_base *b, struct scan *next, struct bytes *targets)
{
	assert(b->scan && !b->next);
	next->from = &b->bytes;
	if (next->whole)
		next->whole->from = NULL; /* nothing is read any more */
	b->next = next;
	b->targets = *targets;
	*targets = (struct bytes){0};
}

int update_base_restart(struct update_base *b, uint64_t plan)
{
	assert(b->next);
	scan_free(b->next);
	b->next = NULL;
	bytes_release(&b->targets);
	return bytes_append(&b->earlier, &plan, sizeof(plan)) ? -ENOMEM : 0;
}

void update_base_end(struct update_base *b)
{
	assert(b->next);
	const size_t n = (size_t)tree_numbers(b->next->tree) + 1;
	free(b->growth);
	b->growth = calloc(n, sizeof(*b->growth));
	b->earlier.len = 0;
	scan_free(b->scan);
	bytes_release(&b->targets);
	b->scan = b->next;
	b->next = NULL;
	for (uint32_t i = 0; i < tree_numbers(b->scan->tree); i++)
		chunk_versions_sort(&b->scan->chunks[i].versions);
	b->is_image = false;
}
