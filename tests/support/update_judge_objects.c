/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A check of each update: reads all objects of both states, and compares what has changed
 * with what the update has found without reading all of them.
 */
#include "update_judge.h"

#include <errno.h>
#include <inttypes.h>

static uint64_t address(const struct scan *s, uint32_t number)
{
	return h5file_address(s->file, number);
}

/* Compares numbers of one file in two scans. Each list has the order of its tree. */
static int compare_numbers(const struct scan *a, const uint32_t *of_a, uint32_t na,
			   const struct scan *b, const uint32_t *of_b, uint32_t nb,
			   const char *what, struct err *err)
{
	if (na != nb)
		return err_set(err, -EINVAL, "%u %s objects instead of %u", na, what, nb);
	for (uint32_t i = 0; i < na; i++)
		if (address(a, of_a[i]) != address(b, of_b[i]))
			return err_set(err, -EINVAL, "%s is not among the %s objects",
				       b->paths[of_b[i]], what);
	return 0;
}

static bool same_parts(const struct part_change *a, const struct part_change *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (a[i].before != b[i].before || a[i].after != b[i].after)
			return false;
	return true;
}

static bool same_change(const struct update *u, const struct object_change *a,
			const struct update *whole, const struct object_change *b)
{
	return address(u->now, a->after) == address(whole->now, b->after) && a->shape == b->shape &&
	       a->comment == b->comment && a->user_block == b->user_block &&
	       a->reordered == b->reordered && a->nattrs == b->nattrs && a->nlinks == b->nlinks &&
	       same_parts(a->attrs, b->attrs, a->nattrs) &&
	       same_parts(a->links, b->links, a->nlinks);
}

static int compare_changed(const struct update *u, const struct update *whole, struct err *err)
{
	const struct tree_change *a = &u->change, *b = &whole->change;
	if (a->nchanged != b->nchanged)
		return err_set(err, -EINVAL, "%u changed objects instead of %u", a->nchanged,
			       b->nchanged);
	for (uint32_t i = 0; i < a->nchanged; i++)
		if (!same_change(u, &a->changed[i], whole, &b->changed[i]))
			return err_set(err, -EINVAL, "the change of %s was not found",
				       whole->now->paths[b->changed[i].after]);
	return 0;
}

static int compare_changes(const struct update *u, const struct update *whole, struct err *err)
{
	const struct tree_change *a = &u->change, *b = &whole->change;
	int rc = compare_changed(u, whole, err);
	if (!rc)
		rc = compare_numbers(u->now, a->added, a->nadded, whole->now, b->added, b->nadded,
				     "added", err);
	return rc ? rc
		  : compare_numbers(u->before, a->removed, a->nremoved, whole->before, b->removed,
				    b->nremoved, "removed", err);
}

/* Checks that the chunks of an unread dataset are where the image has them. */
static int check_unread(const struct update *u, const struct update *whole, uint32_t now,
			struct err *err)
{
	struct slots slots;
	const uint32_t number = h5file_at(whole->now->file, address(u->now, now));
	const struct h5file_dataset *file =
		number == OBJECT_NONE ? NULL : h5file_dataset(whole->now->file, number);
	if (!file)
		return err_set(err, -EINVAL, "%s is no dataset", u->now->paths[now]);
	if (!slots_of(u->base, u->now->opened[now], &file->grid, &slots))
		return 0;
	const int rc = update_judge_slots(whole->now, number, &slots, err);
	return rc ? err_wrap(err, rc, "the check of dataset %s", u->now->paths[now]) : 0;
}

static int check_all_unread(const struct update *u, const struct update *whole, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_count(u->now->tree); i++)
		if (scan_is_unread(u->now, tree_nth(u->now->tree, i)))
			rc = check_unread(u, whole, tree_nth(u->now->tree, i), err);
	return rc;
}

int update_judge_objects(struct update *u, struct err *err)
{
	struct update_base *b = u->base;
	struct update whole = *u;
	int rc = 0;
	if (b->is_image && !b->scan->whole)
		rc = scan_open(u->opt->env, &b->bytes, false, NULL, &b->scan->whole, err);
	if (rc || !b->scan->whole)
		return rc;
	rc = scan_open(u->opt->env, &u->file, true, NULL, &u->now->whole, err);
	if (rc)
		return rc;
	tree_edit(u->now->whole->tree, 0)->group.user_block = tree_user_block(u->now->tree);
	tree_edit(b->scan->whole->tree, 0)->group.user_block = tree_user_block(u->before->tree);
	whole.before = b->scan->whole;
	whole.now = u->now->whole;
	rc = update_match(&whole, err);
	if (!rc)
		rc = tree_change(whole.before->tree, whole.now->tree, whole.same, u->arena,
				 &whole.change, err);
	if (!rc)
		rc = compare_changes(u, &whole, err);
	return rc ? rc : check_all_unread(u, &whole, err);
}
