/* SPDX-License-Identifier: Apache-2.0 */
/* Openings of one domain that meet: whose result an opening may take, which document it may use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <engine/internal.h>
#include <store/implement.h>

#include "small_domain.h"

#define DOCUMENT       "d.h5/.domain.json"
#define OTHER_DOCUMENT "e.h5/.domain.json"
#define LISTING	       SMALL_PREFIX "/"

/* A wrapper that counts the answers to requests for the document of d.h5. It keeps an answer, which
 * is as the bucket was then, until it is told to hand it on. */
struct gate {
	struct store base;
	pthread_mutex_t lock;
	pthread_cond_t kept_one;
	const char *keeps; /* the key or prefix that was asked for; NULL none */
	struct store_request *kept;
	unsigned int documents;
};

static void gate_completed(struct store *s, struct store_request *req)
{
	struct gate *g = (struct gate *)s;

	pthread_mutex_lock(&g->lock);
	const bool asks = req->op == STORE_GET || req->op == STORE_LIST;
	const bool keep = asks && g->keeps && strcmp(req->key, g->keeps) == 0;
	if (asks && strcmp(req->key, DOCUMENT) == 0)
		g->documents++;
	if (keep) {
		assert_null(g->kept);
		g->kept = req;
		pthread_cond_signal(&g->kept_one);
	}
	pthread_mutex_unlock(&g->lock);
	if (!keep)
		store_complete(s, req);
}

/* Waits for an answer that is kept. */
static void gate_await(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	while (!g->kept)
		pthread_cond_wait(&g->kept_one, &g->lock);
	pthread_mutex_unlock(&g->lock);
}

static void gate_keep(struct gate *g, const char *key)
{
	pthread_mutex_lock(&g->lock);
	g->keeps = key;
	pthread_mutex_unlock(&g->lock);
}

/* The answer that is kept goes on. */
static void gate_hand_on(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	struct store_request *req = g->kept;
	g->kept = NULL;
	pthread_mutex_unlock(&g->lock);
	store_complete(&g->base, req);
}

/* What of an engine an opening needs, over a bucket in memory. Names are looked up beneath the
 * gate.
 */
struct fixture {
	struct engine e;
	struct gate gate;
};

/* The document of d.h5 or e.h5, of a domain with small_domain.h's objects. */
static void put_document(struct fixture *f, const char *key, const char *owner)
{
	char json[512];

	snprintf(json, sizeof(json), "{'root':'" SMALL_ROOT "','owner':'%s','acls':{}}", owner);
	assert_int_equal(small_put(f->e.store, key, json), 0);
}

static int setup(void **state)
{
	static const struct store_ops ops = {
		.name = "gate", .submit = store_pass, .completed = gate_completed};
	struct fixture *f = calloc(1, sizeof(*f));
	struct engine *e = &f->e;

	*state = f;
	e->pool = pool_new(0);
	e->env = env_real(NULL, e->pool);
	e->env.budget = budget_new(&(struct budget_limits){
		.bytes = 64 << 20, .metadata_min = 64 << 20, .option = "cache_size"});
	pthread_mutex_init(&f->gate.lock, NULL);
	pthread_cond_init(&f->gate.kept_one, NULL);
	store_wrap(&f->gate.base, &ops, small_domain_new(&e->env), 0, 0);
	e->store = &f->gate.base;
	e->cache = cache_new(&e->env, 1, NULL);
	e->names = names_new(&(struct names_options){
		.env = &e->env, .store = e->store->inner, .schemas = schema_all()});
	e->snapshots = snapshots_new(e->env.budget, 1 << 20);
	put_document(f, DOCUMENT, "before");
	return e->cache && e->names && e->snapshots ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct engine *e = &f->e;

	snapshots_free(e->snapshots);
	names_free(e->names);
	cache_free(e->cache);
	store_free(f->gate.base.inner);
	pthread_cond_destroy(&f->gate.kept_one);
	pthread_mutex_destroy(&f->gate.lock);
	pool_free(e->pool);
	budget_free(e->env.budget);
	free(f);
	return 0;
}

/* ---- an opening ---- */

/* What it found: whose domain it was. */
struct opener {
	struct fixture *f;
	const char *path;
	struct names_node *node; /* NULL: nothing is known of the domain but its path */
	struct snapshot_time asked;
	pthread_t thread;
	int code;
	uint64_t version;
	char owner[16];
};

static void *open_now(void *arg)
{
	struct opener *o = arg;
	struct engine *e = &o->f->e;
	const struct snapshot_domain domain = {.path = o->path, .mount_dir = ""};
	struct snapshot *s;

	if (o->node)
		o->code = domain_snapshot(e, o->node, &o->asked, &s, NULL);
	else
		o->code = snapshots_open(e, &domain, &s, NULL);
	if (o->code)
		return NULL;
	o->version = s->version;
	snprintf(o->owner, sizeof(o->owner), "%s", domain_info(s->domain)->owner);
	snapshot_close(s);
	return NULL;
}

static void begin(struct opener *o)
{
	assert_int_equal(pthread_create(&o->thread, NULL, open_now, o), 0);
}

static struct opener opener_of(struct fixture *f, const char *path)
{
	return (struct opener){.f = f, .path = path};
}

/* One whose domain was just looked up. */
static struct opener opener_found(struct fixture *f, const char *path)
{
	struct opener o = {.f = f};

	assert_int_equal(snapshot_resolve(&f->e, path, &o.node, &o.asked, NULL), 0);
	assert_int_equal(o.node->kind, NAMES_DOMAIN);
	assert_int_not_equal(o.asked.tick, 0);
	return o;
}

/* The same while a build is under way. Returns when the opener waits: it takes a tick as it comes,
 * and holds the table's lock from then on until it waits. */
static void begin_to_wait(struct opener *o)
{
	struct engine *e = &o->f->e;
	uint64_t last = snapshots_time(e).tick, now = last;

	begin(o);
	for (now = snapshots_time(e).tick; now == last + 1; now = snapshots_time(e).tick) {
		last = now;
		usleep(100);
	}
}

static void assert_owner(const struct opener *o, const char *owner)
{
	assert_int_equal(o->code, 0);
	assert_string_equal(o->owner, owner);
}

/* ---- builds under way ---- */

static void who_comes_later_asks_anew(void **state)
{
	struct fixture *f = *state;
	struct opener first = opener_of(f, "d.h5"), second = first;

	gate_keep(&f->gate, DOCUMENT);
	begin(&first);
	gate_await(&f->gate);
	put_document(f, DOCUMENT, "after");
	begin_to_wait(&second);
	gate_keep(&f->gate, NULL);
	gate_hand_on(&f->gate);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_owner(&first, "before");
	assert_owner(&second, "after");
	assert_int_not_equal(first.version, second.version);
	assert_int_equal(f->gate.documents, 2);
}

/* The same, where the build under way finds nothing. */
static void a_failure_is_not_for_who_comes_later(void **state)
{
	struct fixture *f = *state;
	struct opener first = opener_of(f, "d.h5"), second = first;

	assert_int_equal(call_delete(f->e.store, DOCUMENT, NULL, NULL), 0);
	gate_keep(&f->gate, DOCUMENT);
	begin(&first);
	gate_await(&f->gate);
	put_document(f, DOCUMENT, "after");
	begin_to_wait(&second);
	gate_keep(&f->gate, NULL);
	gate_hand_on(&f->gate);
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	assert_int_equal(first.code, -ENOENT);
	assert_owner(&second, "after");
}

/* Three openings: the first one builds, the others wait for its end. How many documents that took.
 * pause: for one of the others to find that another build has begun. */
static unsigned int open_thrice(struct fixture *f, useconds_t pause)
{
	const unsigned int before = f->gate.documents;
	struct opener one = opener_of(f, "d.h5"), openers[3] = {one, one, one};

	gate_keep(&f->gate, DOCUMENT);
	begin(&openers[0]);
	gate_await(&f->gate);
	begin_to_wait(&openers[1]);
	begin_to_wait(&openers[2]);
	gate_hand_on(&f->gate);
	gate_await(&f->gate);
	usleep(pause);
	gate_keep(&f->gate, NULL);
	gate_hand_on(&f->gate);
	for (int i = 0; i < 3; i++) {
		pthread_join(openers[i].thread, NULL);
		assert_owner(&openers[i], "before");
	}
	return f->gate.documents - before;
}

/* An opener that wakes up too late to find the other's build makes its own, so once must do. */
static void who_came_before_a_build_shares_it(void **state)
{
	struct fixture *f = *state;
	unsigned int documents = 0;

	for (useconds_t pause = 1000; documents != 2 && pause < 1000 * 1000; pause *= 2) {
		documents = open_thrice(f, pause);
		assert_in_range(documents, 2, 3);
	}
	assert_int_equal(documents, 2);
}

/* ---- documents that looking up has read ---- */

static void a_document_older_than_a_build_is_asked_for_again(void **state)
{
	struct fixture *f = *state;
	struct opener found = opener_found(f, "d.h5"), between = opener_of(f, "d.h5");

	put_document(f, DOCUMENT, "after");
	open_now(&between);
	assert_owner(&between, "after");
	assert_int_equal(f->gate.documents, 1);
	open_now(&found);
	names_node_unref(found.node);
	assert_owner(&found, "after");
	assert_int_equal(found.version, between.version);
	assert_int_equal(f->gate.documents, 2);
}

/* Builds before it was asked for, and of other domains, do not matter. */
static void a_document_newer_than_all_builds_is_taken(void **state)
{
	struct fixture *f = *state;
	struct opener earlier = opener_of(f, "d.h5"), other = opener_of(f, "e.h5");

	open_now(&earlier);
	assert_owner(&earlier, "before");
	put_document(f, DOCUMENT, "after");
	put_document(f, OTHER_DOCUMENT, "other");
	struct opener found = opener_found(f, "d.h5");
	open_now(&other);
	assert_owner(&other, "other");
	assert_int_equal(f->gate.documents, 1);
	open_now(&found);
	names_node_unref(found.node);
	assert_owner(&found, "after");
	assert_int_equal(f->gate.documents, 1);
}

/* While the first build of a domain is under way, its document is read, then changed, and another
 * opener comes. True when the next build was from what was read. pause: as above. */
static bool open_with_older(struct fixture *f, const char *path, useconds_t pause)
{
	struct opener first = opener_of(f, path), later = first;
	char key[64];

	snprintf(key, sizeof(key), "%s/.domain.json", path);
	put_document(f, key, "before");
	gate_keep(&f->gate, LISTING);
	begin(&first);
	gate_await(&f->gate);
	struct opener found = opener_found(f, path);
	put_document(f, key, "after");
	begin_to_wait(&found);
	begin_to_wait(&later);
	gate_hand_on(&f->gate);
	gate_await(&f->gate); /* the next build */
	usleep(pause);
	gate_keep(&f->gate, NULL);
	gate_hand_on(&f->gate);
	pthread_join(first.thread, NULL);
	pthread_join(found.thread, NULL);
	pthread_join(later.thread, NULL);
	names_node_unref(found.node);
	assert_owner(&later, "after");
	return strcmp(found.owner, "before") == 0;
}

/* A build from a document that was read before is no newer than the reading. */
static void who_comes_after_the_document_was_read_asks_anew(void **state)
{
	bool done = false;
	char path[32];

	for (useconds_t pause = 1000; !done && pause < 1000 * 1000; pause *= 2) {
		snprintf(path, sizeof(path), "%u.h5", pause);
		done = open_with_older(*state, path, pause);
	}
	assert_true(done);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_comes_later_asks_anew),
		TEST(a_failure_is_not_for_who_comes_later),
		TEST(who_came_before_a_build_shares_it),
		TEST(a_document_older_than_a_build_is_asked_for_again),
		TEST(a_document_newer_than_all_builds_is_taken),
		TEST(who_comes_after_the_document_was_read_asks_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
