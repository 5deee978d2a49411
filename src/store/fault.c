/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Injects failures, by rules (store/fault_spec.h). Which request is hit depends on nothing but the
 * order in which matching requests arrive, so a test that submits in a fixed order is repeatable.
 *
 * Threads: the rules never change; each has an atomic count of the requests that matched it. A
 * delay never holds up a thread that completes requests: gets are delayed before they are passed
 * on, in a worker, everything else in the caller.
 */
#include <store/fault_spec.h>
#include <store/store.h>

#include <store/job.h>
#include <store/wrapper.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdatomic.h>
#include <string.h>

struct fault_store {
	struct wrapper w;
	struct fault_spec spec;
	atomic_uint_fast64_t matched[FAULT_RULES_MAX];
};

_Static_assert(FAULT_RULES_MAX <= 32, "struct plan has a bit for each rule");

/* What happens to one request. */
struct plan {
	uint32_t hits;		       /* a bit for each rule */
	const struct fault_rule *fail; /* NULL: it is passed on */
	uint64_t delay_ms;
};

/* One get between its submission and its completion. */
struct pass {
	struct fault_store *faulty;
	struct plan plan;
	store_get_done done;
	void *arg;
};

static struct fault_store *fault_of(struct store *s)
{
	return (struct fault_store *)s;
}

static bool matches(const struct fault_rule *rule, const char *key, bool has_body)
{
	if (!has_body && (rule->what == FAULT_TRUNCATE || rule->what == FAULT_FLIP))
		return false;
	return !rule->glob[0] || fnmatch(rule->glob, key, 0) == 0;
}

static struct plan make_plan(struct fault_store *f, const char *key, bool has_body)
{
	struct plan plan = {0};
	for (unsigned int i = 0; i < f->spec.n; i++) {
		const struct fault_rule *rule = &f->spec.rules[i];
		if (!matches(rule, key, has_body))
			continue;
		uint64_t nth = atomic_fetch_add(&f->matched[i], 1) + 1;
		if (!fault_rule_hits(rule, i, nth))
			continue;
		plan.hits |= UINT32_C(1) << i;
		if (rule->what == FAULT_FAIL && !plan.fail)
			plan.fail = rule;
		if (rule->what == FAULT_DELAY)
			plan.delay_ms += rule->value;
	}
	return plan;
}

static void pause_for(const struct fault_store *f, uint64_t ms)
{
	if (ms)
		f->w.base.env->sleep(f->w.base.env, ms * 1000 * 1000);
}

/* Delays and fails what is not a get. */
static int before(struct fault_store *f, const char *key, struct err *err)
{
	struct plan plan = make_plan(f, key, false);
	pause_for(f, plan.delay_ms);
	if (!plan.fail)
		return 0;
	return err_errno(err, -(int)plan.fail->value, "object %s: injected failure", key);
}

/* ---- get ---- */

static void spoil(const struct fault_store *f, const struct plan *plan, struct bytes *body)
{
	for (unsigned int i = 0; i < f->spec.n; i++) {
		const struct fault_rule *rule = &f->spec.rules[i];
		if (!(plan->hits & UINT32_C(1) << i))
			continue;
		if (rule->what == FAULT_TRUNCATE && rule->value < body->len)
			body->len = (size_t)rule->value;
		if (rule->what == FAULT_FLIP && rule->value < body->len)
			body->data[rule->value] ^= 0xff;
	}
}

static void passed(void *arg, struct store_get_result *res)
{
	struct pass pass = *(struct pass *)arg;
	free(arg);
	if (res->code == 0)
		spoil(pass.faulty, &pass.plan, &res->body);
	pass.done(pass.arg, res);
}

/* req->done and arg are the pass's here. */
static void forward(struct store *s, const struct store_get *req)
{
	struct fault_store *f = fault_of(s);
	struct pass *pass = req->arg;
	pause_for(f, pass->plan.delay_ms);
	if (pass->plan.fail)
		job_fail(req, -(int)pass->plan.fail->value, "object %s: injected failure: %s",
			 req->key, fault_errno_name((int)pass->plan.fail->value));
	else
		store_get_async(f->w.inner, req);
}

static void get(struct store *s, const struct store_get *req)
{
	struct fault_store *f = fault_of(s);
	struct plan plan = make_plan(f, req->key, req->op == STORE_GET);
	struct pass *pass = malloc(sizeof(*pass));
	if (!pass) {
		job_fail(req, -ENOMEM, "object %s: no memory", req->key);
		return;
	}
	*pass = (struct pass){.faulty = f, .plan = plan, .done = req->done, .arg = req->arg};
	struct store_get spoilt = *req;
	spoilt.done = passed;
	spoilt.arg = pass;
	if (!plan.delay_ms)
		forward(s, &spoilt);
	else if (job_submit(s, &spoilt, forward))
		job_fail(&spoilt, -ENOMEM, "object %s: no memory", req->key);
}

/* ---- the others ---- */

static int list(struct store *s, const struct store_list *req, struct store_page *page,
		struct err *err)
{
	int rc = before(fault_of(s), req->prefix, err);
	return rc ? rc : store_list_page(inner_of(s), req, page, err);
}

static int put(struct store *s, const char *key, const void *body, size_t n,
	       const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	int rc = before(fault_of(s), key, err);
	return rc ? rc : store_put(inner_of(s), key, body, n, cond, meta, err);
}

static int del(struct store *s, const char *key, const struct store_cond *cond, struct err *err)
{
	int rc = before(fault_of(s), key, err);
	return rc ? rc : store_delete(inner_of(s), key, cond, err);
}

static const struct store_ops fault_ops = {
	.name = "fault",
	.get = get,
	.list = list,
	.put = put,
	.del = del,
	.space = wrapper_space,
	.free = wrapper_free,
};

struct store *store_fault_new(struct store *inner, const char *spec, struct err *err)
{
	struct fault_store *f = calloc(1, sizeof(*f));
	if (!f) {
		err_set(err, -ENOMEM, "faulty store: no memory");
		return NULL;
	}
	if (fault_spec_parse(spec, &f->spec, err)) {
		free(f);
		return NULL;
	}
	wrapper_init(&f->w, &fault_ops, inner);
	return &f->w.base;
}
