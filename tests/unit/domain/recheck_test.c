/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a dataset's document, with several chunks that need it at the same time. */
#include "domain_fixture.h"

#include <errno.h>
#include <stdatomic.h>

#include <store/implement.h>
#include <bucket/schemas.h>

/* A wrapper that holds heads until a test lets them go. */
struct holder {
	struct store base;
	struct store_request *held;
	unsigned int heads;
	bool opens;		       /* holds nothing yet */
	bool answers;		       /* holds their answers instead */
	struct domain_changes changes; /* that this process makes */
};

static void hold(struct store *s, struct store_request *req)
{
	struct holder *h = (struct holder *)s;
	h->heads += req->op == STORE_HEAD;
	if (req->op != STORE_HEAD || h->answers || h->opens) {
		store_pass(s, req);
		return;
	}
	assert_null(h->held);
	h->held = req;
}

static void completed(struct store *s, struct store_request *req)
{
	struct holder *h = (struct holder *)s;
	if (req->op != STORE_HEAD || !h->answers) {
		store_complete(s, req);
		return;
	}
	assert_null(h->held);
	h->held = req;
}

static void cancel_held(struct holder *h)
{
	struct store_request *req = h->held;
	h->held = NULL;
	store_fail(&h->base, req, -ECANCELED, "cancelled");
}

static void pass_held(struct holder *h)
{
	struct store_request *req = h->held;
	h->held = NULL;
	store_pass(&h->base, req);
}

struct got {
	unsigned int calls;
	int code;
	bool absent;
};

static void take(void *arg, struct chunk_result *chunk)
{
	struct got *got = arg;
	got->calls++;
	got->code = chunk->code;
	got->absent = chunk->absent;
	elems_release(&chunk->data.elems);
}

static uint64_t fixed_time(const struct env *env)
{
	return UINT64_C(1000000000000);
}

/* Opens a domain that is too large to be listed whole, so that an absent chunk needs the check. */
static void open_large(struct fixture *f, struct holder *h)
{
	static const struct store_ops ops = {
		.name = "holder", .submit = hold, .completed = completed};
	for (unsigned int i = 0; i < DOMAIN_LISTING; i++) {
		char key[128];
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-00aaaa/%u", i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
	f->env.now = fixed_time;
	*h = (struct holder){.opens = true};
	store_wrap(&h->base, &ops, f->store, 0, 0);
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = &h->base,
							     .schemas = schema_all(),
							     .changes = &h->changes},
				     "d.h5", NULL, &f->domain, NULL),
			 0);
	h->opens = false;
	h->heads = 0;
}

static void close_large(struct fixture *f)
{
	domain_unref(f->domain);
	f->domain = NULL;
}

static void request_chunk(struct fixture *f, uint64_t number, const atomic_bool *cancelled,
			  struct got *got)
{
	const struct tree *tree = domain_tree(f->domain);
	const struct chunk_source chunks = domain_chunk_source(f->domain);
	struct chunk_request request = {.number = number, .cancelled = cancelled};
	for (uint32_t i = 0; i < tree_count(tree); i++)
		if (strcmp(tree_object(tree, tree_nth(tree, i))->o.id, SMALL_INTS) == 0)
			request.dataset = tree_nth(tree, i);
	*got = (struct got){0};
	chunks.get(chunks.ctx, &request, take, got);
}

static void several_chunks_wait_for_one_check(void **state)
{
	struct fixture *f = *state;
	struct holder h;
	struct got a, b;
	open_large(f, &h);
	request_chunk(f, 0, NULL, &a);
	request_chunk(f, 2, NULL, &b);
	assert_int_equal(h.heads, 1);
	assert_int_equal(a.calls + b.calls, 0);
	pass_held(&h);
	assert_int_equal(h.heads, 1);
	assert_true(a.calls == 1 && a.code == 0 && a.absent);
	assert_true(b.calls == 1 && b.code == 0 && b.absent);
	close_large(f);
}

/* Only the chunk that was cancelled fails. For the other one, the document is checked again. */
static void a_cancelled_chunk_does_not_cancel_the_others(void **state)
{
	struct fixture *f = *state;
	struct holder h;
	struct got a, b;
	atomic_bool cancelled = false;
	open_large(f, &h);
	request_chunk(f, 0, &cancelled, &a);
	request_chunk(f, 2, NULL, &b);
	atomic_store(&cancelled, true);
	cancel_held(&h);
	assert_true(a.calls == 1 && a.code == -ECANCELED);
	assert_int_equal(b.calls, 0);
	assert_int_equal(h.heads, 2);
	pass_held(&h);
	assert_true(a.calls == 1);
	assert_true(b.calls == 1 && b.code == 0 && b.absent);
	/* Both heads are over: the next chunk does not wait for one of them. */
	request_chunk(f, 0, NULL, &a);
	assert_int_equal(a.calls, 1);
	assert_int_equal(h.heads, 2);
	close_large(f);
}

/* Makes the dataset smaller, as a commit does: first the document, then its chunks. */
static void shrink(struct fixture *f)
{
	assert_int_equal(small_put(f->store, SMALL_KEY_INTS,
				   "{" SMALL_HEAD(SMALL_INTS) ",'type':" SMALL_I32
							      ",'shape':{'class':'H5S_SIMPLE','"
							      "dims':[2],'maxdims':[0]},"
							      "'attributes':{},'layout':{'class':'"
							      "H5D_CHUNKED','dims':[4]}}"),
			 0);
	assert_int_equal(call_delete(f->store, SMALL_PREFIX "/d/0002-000000-000001/1", NULL, NULL),
			 0);
}

/* A check that was made a moment ago does not prove that a chunk has the fill value, if this
 * process has changed the domain since. */
static void a_check_before_a_change_does_not_count(void **state)
{
	struct fixture *f = *state;
	for (unsigned int is_over = 0; is_over < 2; is_over++) {
		struct holder h;
		struct got a;
		open_large(f, &h);
		request_chunk(f, 0, NULL, &a);
		pass_held(&h);
		assert_true(a.calls == 1 && a.code == 0 && a.absent);
		domain_change_begin(&h.changes);
		shrink(f);
		if (is_over)
			domain_change_end(&h.changes);
		request_chunk(f, 1, NULL, &a);
		assert_int_equal(a.calls, 0);
		pass_held(&h);
		assert_int_equal(h.heads, 2);
		assert_true(a.calls == 1 && a.code == -ESTALE);
		close_large(f);
		teardown(state);
		assert_int_equal(setup(state), 0);
		f = *state;
	}
}

/* Nor does the answer of one that has begun before. */
static void a_check_in_flight_does_not_count(void **state)
{
	struct fixture *f = *state;
	struct holder h;
	struct got a, b;
	open_large(f, &h);
	h.answers = true;
	request_chunk(f, 0, NULL, &a);
	domain_change_begin(&h.changes);
	shrink(f);
	domain_change_end(&h.changes);
	request_chunk(f, 1, NULL, &b);
	struct store_request *first = h.held;
	h.held = NULL;
	h.answers = false;
	store_complete(&h.base, first);
	assert_true(a.calls == 1 && a.code == 0 && a.absent);
	assert_int_equal(b.calls, 0);
	pass_held(&h);
	assert_true(b.calls == 1 && b.code == -ESTALE);
	assert_int_equal(h.heads, 2);
	close_large(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(several_chunks_wait_for_one_check, setup, teardown),
		cmocka_unit_test_setup_teardown(a_cancelled_chunk_does_not_cancel_the_others, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_check_before_a_change_does_not_count, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_check_in_flight_does_not_count, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
