/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Injects failures according to rules (store/fault_spec.h). The order in which requests arrive
 * alone decides which of them are hit. So a test that submits in a fixed order is repeatable.
 *
 * Threads: the rules never change. Each has an atomic count of the requests that matched it. A
 * delayed request sleeps in a worker before it is passed on, so no thread that completes requests
 * is blocked.
 */
#include <store/fault_spec.h>
#include <store/implement.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdatomic.h>

struct fault_store {
	struct store base;
	struct fault_spec spec;
	atomic_uint_fast64_t matched[FAULT_RULES_MAX];
};

_Static_assert(FAULT_RULES_MAX <= 32, "struct plan has a bit for each rule");

/* The private memory of a request: the rules that apply to it. */
struct plan {
	uint32_t hits;		       /* a bit for each rule */
	const struct fault_rule *fail; /* NULL if it is passed on */
	uint64_t delay_ms;
};

static struct fault_store *fault_of(struct store *s)
{
	return (struct fault_store *)s;
}

static bool matches(const struct fault_rule *rule, const struct store_request *req)
{
	const bool changes_body = rule->what == FAULT_TRUNCATE || rule->what == FAULT_FLIP;
	if (changes_body && req->op != STORE_GET)
		return false;
	return !rule->glob[0] || fnmatch(rule->glob, req->key, 0) == 0;
}

static void make_plan(struct fault_store *f, const struct store_request *req, struct plan *plan)
{
	*plan = (struct plan){0};
	for (unsigned int i = 0; i < f->spec.n; i++) {
		const struct fault_rule *rule = &f->spec.rules[i];
		if (!matches(rule, req))
			continue;
		uint64_t nth = atomic_fetch_add(&f->matched[i], 1) + 1;
		if (!fault_rule_hits(rule, i, nth))
			continue;
		plan->hits |= UINT32_C(1) << i;
		if (rule->what == FAULT_FAIL && !plan->fail)
			plan->fail = rule;
		if (rule->what == FAULT_DELAY)
			plan->delay_ms += rule->value;
	}
}

/* ENOENT in a rule stands for an absent object, reported by the service. */
static void forward(struct store *s, struct store_request *req)
{
	const struct plan *plan = store_private(s, req);
	const int code = plan->fail ? -(int)plan->fail->value : 0;
	if (code == 0) {
		store_pass(s, req);
	} else if (code != -ENOENT) {
		store_fail(s, req, code, "object %s: injected failure: %s", req->key,
			   fault_errno_name(-code));
	} else if (req->op == STORE_LIST || req->op == STORE_PUT) {
		store_fail(s, req, -EIO, "object %s: injected failure: ENOENT", req->key);
	} else {
		req->answer.was_absent = req->op == STORE_DELETE && req->cond.if_match;
		store_absent(s, req, STORE_BY_SERVICE);
	}
}

static void delay(void *arg)
{
	struct store_request *req = arg;
	struct store *s = store_working(req);
	const struct plan *plan = store_private(s, req);
	s->env->sleep(s->env, plan->delay_ms * 1000 * 1000);
	forward(s, req);
}

static void submit(struct store *s, struct store_request *req)
{
	struct plan *plan = store_private(s, req);
	make_plan(fault_of(s), req, plan);
	if (plan->delay_ms)
		store_work(s, req, delay);
	else
		forward(s, req);
}

static void completed(struct store *s, struct store_request *req)
{
	const struct fault_store *f = fault_of(s);
	const struct plan *plan = store_private(s, req);
	struct bytes *body = &req->answer.body;
	for (unsigned int i = 0; i < f->spec.n; i++) {
		const struct fault_rule *rule = &f->spec.rules[i];
		if (!(plan->hits & UINT32_C(1) << i))
			continue;
		if (rule->what == FAULT_TRUNCATE && rule->value < body->len)
			body->len = (size_t)rule->value;
		if (rule->what == FAULT_FLIP && rule->value < body->len)
			body->data[rule->value] ^= 0xff;
	}
	store_complete(s, req);
}

/* A move matches a rule if one of its keys does. */
static bool matches_move(const struct fault_rule *rule, const char *from, const char *to)
{
	if (rule->what == FAULT_TRUNCATE || rule->what == FAULT_FLIP)
		return false;
	return !rule->glob[0] || fnmatch(rule->glob, from, 0) == 0 ||
	       fnmatch(rule->glob, to, 0) == 0;
}

static int move(struct store *s, const char *from, const char *from_version, const char *to,
		const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct fault_store *f = fault_of(s);
	int code = 0;
	for (unsigned int i = 0; i < f->spec.n; i++) {
		const struct fault_rule *rule = &f->spec.rules[i];
		if (!matches_move(rule, from, to) ||
		    !fault_rule_hits(rule, i, atomic_fetch_add(&f->matched[i], 1) + 1))
			continue;
		if (rule->what == FAULT_FAIL && !code)
			code = -(int)rule->value;
		if (rule->what == FAULT_DELAY)
			s->env->sleep(s->env, rule->value * 1000 * 1000);
	}
	if (code)
		return err_set(err, code == -ENOENT ? -EIO : code,
			       "object %s: injected failure: %s", from, fault_errno_name(-code));
	return store_move(s->inner, from, from_version, to, cond, meta, err);
}

static const struct store_ops fault_ops = {
	.name = "fault",
	.submit = submit,
	.completed = completed,
	.move = move,
	.free = store_wrapper_free,
};

struct store *store_fault_new(struct store *inner, const char *spec, struct err *err)
{
	struct fault_store *f = calloc(1, sizeof(*f));
	if (!f) {
		err_set(err, -ENOMEM, "faulty store: out of memory");
		return NULL;
	}
	if (fault_spec_parse(spec, &f->spec, err)) {
		free(f);
		return NULL;
	}
	store_wrap(&f->base, &fault_ops, inner, sizeof(struct plan), 0);
	return &f->base;
}
