/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol-table groups. Input: u8 with the sizes of addresses (bits 0-1: 2, 4, 8) and lengths (bits
 * 2-3), u8 leaf K, u8 internal K, u16 address of the B-tree, u16 address of the local heap, the
 * file. Properties: names are not empty and in ascending order; a walk with claims finds the same
 * links, or fails because of an overlap; a walk that a callback ends returns its value.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <h5/claims.h>
#include <h5/symtab.h>

#include "require.h"

enum { HEAD = 7 };

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memcpy(buf, (const uint8_t *)ctx + offset, n);
	return 0;
}

struct links {
	struct bytes text; /* all names and paths with their NULs */
	size_t last;	   /* offset of the last name in it */
	uint64_t n, stop_at;
};

static int add(void *ctx, const struct h5_symbol *s, struct err *err)
{
	struct links *l = ctx;
	require(s->name[0]);
	require((s->header == H5_UNDEF) == (s->path != NULL));
	require(!l->n || strcmp((const char *)l->text.data + l->last, s->name) < 0);
	l->last = l->text.len;
	require(!bytes_append(&l->text, s->name, strlen(s->name) + 1));
	if (s->path)
		require(!bytes_append(&l->text, s->path, strlen(s->path) + 1));
	return ++l->n == l->stop_at ? 42 : 0;
}

static void check(struct h5_file *f, const struct h5_symtab *t)
{
	struct links first = {.n = 0}, second = {.n = 0}, third = {.stop_at = 1};
	int rc = h5_symtab_find(f, t, NULL, add, &first, NULL);
	require(rc == 0 || rc == -EIO || rc == -EOPNOTSUPP);
	f->claims = h5_claims_new(NULL);
	require(f->claims);
	int again = h5_symtab_find(f, t, NULL, add, &second, NULL);
	require(again == rc || (!rc && again == -EIO));
	require(first.n == second.n && first.text.len == second.text.len);
	h5_claims_free(f->claims);
	f->claims = NULL;
	if (first.n)
		require(h5_symtab_find(f, t, NULL, add, &third, NULL) == 42);
	bytes_release(&first.text);
	bytes_release(&second.text);
	bytes_release(&third.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t sizes[] = {2, 4, 8, 8};
	struct cursor c = cursor_of(data, size);
	const uint8_t widths = cur_u8(&c), leaf_k = cur_u8(&c), internal_k = cur_u8(&c);
	const struct h5_symtab t = {.btree = cur_u16(&c), .heap = cur_u16(&c)};
	if (!cur_ok(&c))
		return 0;
	const size_t n = size - HEAD;
	auto_free uint8_t *bytes = malloc(n ? n : 1);
	require(bytes);
	if (n)
		memcpy(bytes, data + HEAD, n);
	struct source source = {.size = n, .read_at = read_at, .ctx = bytes};
	struct h5_file f = h5_file_of(&source);
	f.addr_size = sizes[widths & 3];
	f.len_size = sizes[widths >> 2 & 3];
	f.leaf_k = leaf_k;
	f.internal_k = internal_k;
	check(&f, &t);
	return 0;
}
