/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a draft as an update sees it: from its superblock on. So all addresses in the file
 * are offsets in this source, also if there is a user block in front of the superblock, and those
 * of the image are, too. Only the functions of this file know the size of the block.
 *
 * A program may put a block in front of a file that had none, or one of another size (h5jam,
 * h5unjam). Then the bytes of the image are at other offsets than in the file, so all bytes count
 * as written.
 */
#include "update_internal.h"

#include <errno.h>
#include <string.h>

#include <domain/read_user_block.h>

/* ---- bytes ---- */

/* Errors of the disk that has the draft, and of the bucket, are not damage of the file. */
static int read_bytes(struct update *u, struct source *from, uint64_t offset, void *buf, size_t n,
		      struct err *err)
{
	const int rc = source_read(from, offset, buf, n, err);
	if (rc)
		atomic_store(&u->failed, true);
	return rc;
}

static int read_whole(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct update *u = ctx;
	return read_bytes(u, draft_snapshot_source(u->opt->snapshot), offset, buf, n, err);
}

static int read_file(void *ctx, uint64_t addr, void *buf, size_t n, struct err *err)
{
	const struct update *u = ctx;
	return read_whole(ctx, u->user_block + addr, buf, n, err);
}

static int read_image(void *ctx, uint64_t addr, void *buf, size_t n, struct err *err)
{
	struct update *u = ctx;
	return read_bytes(u, &u->base->bytes, addr, buf, n, err);
}

static uint64_t next_replaced(void *ctx, uint64_t start, uint64_t end)
{
	return update_next_replaced(ctx, start, end);
}

static struct source whole_file(struct update *u)
{
	return (struct source){.size = draft_snapshot_source(u->opt->snapshot)->size,
			       .read_at = read_whole,
			       .ctx = u};
}

static uint64_t block_size(const struct user_block *b)
{
	return b ? b->size : 0;
}

int update_find_file(struct update *u, struct err *err)
{
	struct source whole = whole_file(u);
	const struct update_base *b = u->base;
	const struct user_block *of_image = tree_user_block(domain_tree(b->domain));
	const struct user_block *of_base = b->scan ? tree_user_block(b->scan->tree) : of_image;
	int rc = h5file_find(&whole, &u->user_block, err);
	u->is_moved = u->user_block != block_size(of_base);
	u->is_moved_since_image = u->user_block != block_size(of_image);
	u->file =
		(struct source){.size = whole.size - u->user_block, .read_at = read_file, .ctx = u};
	u->image = (struct source){.size = b->bytes.size, .read_at = read_image, .ctx = u};
	u->since = (struct since_image){
		.file = &u->file, .image = &u->image, .next_replaced = next_replaced, .ctx = u};
	return rc;
}

/* ---- what was written ---- */

bool update_is_written(const struct update *u, uint64_t start, uint64_t end)
{
	return u->is_moved || draft_snapshot_is_changed(u->opt->snapshot, u->user_block + start,
							u->user_block + end);
}

uint64_t update_next_written(const struct update *u, uint64_t start, uint64_t end)
{
	return u->is_moved ? start
			   : draft_snapshot_next_changed(u->opt->snapshot, u->user_block + start,
							 u->user_block + end) -
				     u->user_block;
}

uint64_t update_next_replaced(const struct update *u, uint64_t start, uint64_t end)
{
	return u->is_moved_since_image
		       ? start
		       : draft_snapshot_next_written(u->opt->snapshot, u->user_block + start,
						     u->user_block + end) -
				 u->user_block;
}

bool update_is_held(const struct update *u, uint64_t start, uint64_t end)
{
	return draft_snapshot_holds(u->opt->snapshot, u->user_block + start, u->user_block + end);
}

/* ---- the user block ---- */

/* A block that a program has written with the bytes that it had is still the same object. */
static int keep_object(const struct update *u, const struct user_block **block, struct err *err)
{
	const struct user_block *old = tree_user_block(u->before->tree);
	if (!*block || !old || !old->object || !user_block_equal(*block, old))
		return 0;
	struct user_block *b = arena_alloc(u->now->arena, sizeof(*b));
	if (!b)
		return err_set(err, -ENOMEM, "out of memory: the user block");
	*b = **block;
	b->object = arena_strndup(u->now->arena, old->object, strlen(old->object));
	*block = b;
	return b->object ? 0 : err_set(err, -ENOMEM, "out of memory: the user block");
}

int update_read_user_block(struct update *u, struct err *err)
{
	struct source whole = whole_file(u);
	const uint64_t n = u->user_block;
	const struct user_block **block = &tree_edit(u->now->tree, 0)->group.user_block;
	if (!u->is_moved_since_image && draft_snapshot_next_written(u->opt->snapshot, 0, n) == n) {
		*block = tree_user_block(domain_tree(u->base->domain));
		return 0;
	}
	const struct user_block *image = tree_user_block(domain_tree(u->base->domain));
	/* Bytes that were not written would become zeros. */
	if (image && image->is_unknown && n && !draft_snapshot_holds(u->opt->snapshot, 0, n))
		return err_set(err, -EIO,
			       "the user block of the domain cannot be read, and only a part of it "
			       "was written");
	int rc = n <= USER_BLOCK_MAX ? budget_set(&u->now->charge, u->now->charge.bytes + n, err)
				     : 0;
	if (!rc)
		rc = user_block_of_file(&whole, n, u->now->arena, block, err);
	if (rc == -EFBIG)
		return err_wrap(err, -EOPNOTSUPP, "a domain cannot hold the file");
	return rc ? rc : keep_object(u, block, err);
}

int update_plan_user_block(struct update *u, struct err *err)
{
	const struct user_block *b = tree_user_block(u->now->tree);
	char key[SCHEMA_KEY_MAX + 1];
	auto_bytes struct bytes body = {0};
	const struct update_operation what = {
		.op = {.action = PLAN_PUT, .condition = PLAN_ALWAYS, .phase = PHASE_NEW_OBJECTS},
		.key = key,
		.target = {.object = OBJECT_NONE, .owner = OBJECT_NONE},
	};
	if (!b || !b->object || user_block_equal(b, tree_user_block(u->before->tree)))
		return 0;
	if (u->schema->user_block_key(u->now->tree, key, sizeof(key)) <= 0)
		return err_set(err, -EIO, "the key of the user block cannot be made");
	if (bytes_append(&body, b->data, b->len))
		return err_set(err, -ENOMEM, "out of memory: the user block");
	return update_add(u, &what, &body, err);
}
