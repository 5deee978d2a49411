/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared messages and the opening of a file. Input: u16 address of an object header, the file. The
 * target opens the file, claims what opening has read and the table of shared messages, and decodes
 * the messages of the header. Properties: errors are of the documented codes; resolving a message
 * twice gives the same bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <h5/claims.h>
#include <h5/message.h>
#include <h5/shared.h>

#include "require.h"

enum { HEAD = 2, ARENA_LIMIT = 64 << 20 };

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memcpy(buf, (const uint8_t *)ctx + offset, n);
	return 0;
}

static bool known(int rc)
{
	return rc == 0 || rc == -EIO || rc == -EOPNOTSUPP || rc == -ENOMEM;
}

static void check_message(const struct h5_file *f, struct h5_shared *s, const struct h5_msg *m,
			  struct arena *a)
{
	struct cursor c = cursor_of(m->body, m->len), again = c, body = c, second = c;
	uint64_t committed;
	if (m->flags & H5_MSG_SHARED) {
		int rc = h5_shared_resolve(s, m->type, &c, a, &body, &committed, NULL);
		require(known(rc));
		if (rc)
			return;
		require(!h5_shared_resolve(s, m->type, &again, a, &second, &committed, NULL));
		require(cur_left(&body) == cur_left(&second));
		require(!memcmp(body.pos, second.pos, cur_left(&body)));
	}
	struct h5_attr attr;
	if (m->type == H5_MSG_ATTRIBUTE)
		require(known(h5_attr_decode(f, &body, a, s, &attr, NULL)));
}

static void check(struct h5_file *f, uint64_t addr, struct arena *a)
{
	struct h5_ohdr h;
	struct h5_shared *s = h5_shared_new(f);
	require(s);
	require(known(h5_file_claim(f, NULL)));
	require(known(h5_shared_claim(s, NULL)));
	int rc = h5_ohdr_decode(f, addr, a, &h, NULL);
	require(known(rc));
	for (uint32_t i = 0; i < h.n; i++)
		check_message(f, s, &h.msgs[i], a);
	h5_shared_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < HEAD)
		return 0;
	const uint64_t addr = (uint64_t)data[0] | (uint64_t)data[1] << 8;
	const size_t n = size - HEAD;
	auto_free uint8_t *bytes = malloc(n ? n : 1);
	require(bytes);
	if (n)
		memcpy(bytes, data + HEAD, n);
	struct source source = {.size = n, .read_at = read_at, .ctx = bytes};
	struct h5_file f;
	int rc = h5_file_open(&f, &source, NULL);
	require(known(rc));
	if (rc)
		return 0;
	struct arena *a = arena_new(ARENA_LIMIT);
	f.claims = h5_claims_new(NULL);
	require(a && f.claims);
	check(&f, addr, a);
	h5_claims_free(f.claims);
	arena_free(a);
	return 0;
}
