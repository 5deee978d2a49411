/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's memory:
 *
 *   struct store_request | private memory of the stack | headroom, key, NUL | headroom, after, NUL
 *
 * A wrapper puts a prefix in front of a text by writing into its headroom, without moving the text.
 * No state, so no locks.
 */
#include <store/implement.h>

#include <string.h>

/* One byte more than a valid key needs, so that a longer key is noticed. */
enum { TEXT_SIZE = STORE_KEY_MAX + 2 };

static size_t private_of(const struct store *s)
{
	return align_u64(s->private_size, alignof(max_align_t));
}

size_t store_request_size(const struct store *s)
{
	return sizeof(struct store_request) + private_of(s) + 2 * (s->headroom + TEXT_SIZE);
}

struct store_request *store_request_init(void *memory, const struct store *s, enum store_op op)
{
	struct store_request *req = memory;
	char *texts = req->memory + private_of(s);
	memset(req, 0, sizeof(*req));
	req->private_size = s->private_size;
	req->room = TEXT_SIZE;
	req->key = texts + s->headroom;
	req->after = req->key + TEXT_SIZE + s->headroom;
	store_request_reset(req, op);
	return req;
}

void store_request_reset(struct store_request *req, enum store_op op)
{
	store_request_release(req);
	*req = (struct store_request){
		.op = op,
		.key = req->key,
		.after = req->after,
		.room = req->room,
		.private_size = req->private_size,
		.range.length = STORE_TO_END,
		.list = {.max = STORE_PAGE_MAX, .limit = UINT32_MAX},
	};
	req->key[0] = '\0';
}

struct store_request *store_request_new(const struct store *s, enum store_op op)
{
	void *memory = malloc(store_request_size(s));
	return memory ? store_request_init(memory, s, op) : NULL;
}

void store_request_release(struct store_request *req)
{
	store_answer_clear(req);
	store_page_release(&req->sum);
}

void store_request_free(struct store_request *req)
{
	if (!req)
		return;
	store_request_release(req);
	free(req);
}

uint64_t store_range_clip(const struct store_range *range, uint64_t size, uint64_t *first)
{
	if (range->from_end)
		*first = size - min_u64(range->length, size);
	else
		*first = min_u64(range->first, size);
	return min_u64(range->length, size - *first);
}

static void set_text(struct store_request *req, char *to, const char *text)
{
	const size_t n = strnlen(text, req->room - 1);
	memcpy(to, text, n);
	to[n] = '\0';
}

void store_request_key(struct store_request *req, const char *key)
{
	set_text(req, req->key, key);
}

void store_request_start_after(struct store_request *req, const char *key)
{
	set_text(req, req->after, key);
	req->list.start_after = req->after;
}

/* ---- answers ---- */

void store_result_drop(struct store_request *req)
{
	bytes_release(&req->answer.body);
	store_page_release(&req->answer.page);
	req->answer.state = STORE_UNKNOWN;
	req->answer.unchanged = false;
	req->answer.meta = (struct store_meta){0};
	req->answer.has_note = false;
	req->answer.note[0] = '\0';
	req->answer.has_mark = false;
	req->answer.mark[0] = '\0';
	req->answer.was_absent = false;
}

void store_answer_clear(struct store_request *req)
{
	store_result_drop(req);
	req->answer.repeated = req->answer.refused = false;
	req->answer.damage = 0;
	err_clear(&req->answer.err);
}

int store_failure(const struct store_answer *a, struct err *err)
{
	if (a->state != STORE_UNKNOWN)
		return 0;
	err_copy(err, &a->err);
	return a->err.code;
}
