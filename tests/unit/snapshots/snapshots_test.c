/* SPDX-License-Identifier: Apache-2.0 */
/* Opens of one domain at the same time: which results they share, and which document they may use.
 * Also: which images and sizes are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine_internal.h"
#include <snapshots/size_cache.h>
#include <store/implement.h>
#include <bucket/schemas.h>

#include "small_domain.h"

#define DOCUMENT       "d.h5/.domain.json"
#define OTHER_DOCUMENT "e.h5/.domain.json"
#define LISTING	       SMALL_PREFIX "/"

/* A store wrapper that counts the answers to requests for the document of d.h5. It can hold an
 * answer, which shows the bucket as it was then, until the test releases it. */
struct gate {
	struct store base;
	pthread_mutex_t lock;
	pthread_cond_t held_one;
	const char *holds; /* answers to requests for this key or prefix; NULL none */
	struct store_request *held;
	unsigned int documents;
};

static void gate_completed(struct store *s, struct store_request *req)
{
	struct gate *g = (struct gate *)s;
	pthread_mutex_lock(&g->lock);
	const bool is_read = req->op == STORE_GET || req->op == STORE_LIST;
	const bool hold = is_read && g->holds && strcmp(req->key, g->holds) == 0;
	if (is_read && strcmp(req->key, DOCUMENT) == 0)
		g->documents++;
	if (hold) {
		assert_null(g->held);
		g->held = req;
		pthread_cond_signal(&g->held_one);
	}
	pthread_mutex_unlock(&g->lock);
	if (!hold)
		store_complete(s, req);
}

/* Waits until an answer is held. */
static void gate_wait(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	while (!g->held)
		pthread_cond_wait(&g->held_one, &g->lock);
	pthread_mutex_unlock(&g->lock);
}

static void gate_hold(struct gate *g, const char *key)
{
	pthread_mutex_lock(&g->lock);
	g->holds = key;
	pthread_mutex_unlock(&g->lock);
}

static void gate_release(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	struct store_request *req = g->held;
	g->held = NULL;
	pthread_mutex_unlock(&g->lock);
	store_complete(&g->base, req);
}

/* The parts of an engine that an open needs, over a bucket in memory. Look-ups do not pass the
 * gate. */
struct fixture {
	struct bucket e;
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
	struct bucket *e = &f->e;
	*state = f;
	e->pool = pool_new(0);
	e->env = env_real(NULL, e->pool);
	e->env.budget = budget_new(&(struct budget_limits){
		.bytes = 64 << 20, .metadata_min = 64 << 20, .option = "cache_size"});
	pthread_mutex_init(&f->gate.lock, NULL);
	pthread_cond_init(&f->gate.held_one, NULL);
	store_wrap(&f->gate.base, &ops, small_domain_new(&e->env), 0, 0);
	e->store = &f->gate.base;
	e->domains =
		(struct domain_bucket){.env = &e->env, .store = e->store, .schemas = schema_all()};
	e->cache = cache_new(&e->env, 1, NULL);
	e->names = names_new(&(struct names_options){
		.env = &e->env, .store = e->store->inner, .schemas = schema_all()});
	e->snapshots = snapshots_new(e, 1 << 20);
	e->size_cache = size_cache_new(NULL, NULL, 0);
	put_document(f, DOCUMENT, "before");
	return e->cache && e->names && e->size_cache && e->snapshots ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct bucket *e = &f->e;
	size_cache_free(e->size_cache);
	snapshots_free(e->snapshots);
	names_free(e->names);
	cache_free(e->cache);
	store_free(f->gate.base.inner);
	pthread_cond_destroy(&f->gate.held_one);
	pthread_mutex_destroy(&f->gate.lock);
	pool_free(e->pool);
	budget_free(e->env.budget);
	free(f);
	return 0;
}

/* ---- an open in a thread ---- */

/* owner: of the domain that was opened, so that a test knows which document was used. */
struct opener {
	struct fixture *f;
	const char *path;
	struct names_node *node; /* NULL: the domain was not looked up */
	struct snapshot_time requested;
	pthread_t thread;
	int code;
	uint64_t version;
	char owner[16];
};

static void *open_now(void *arg)
{
	struct opener *o = arg;
	struct bucket *e = &o->f->e;
	const struct snapshot_domain domain = {.path = o->path, .mount_dir = ""};
	struct snapshot *s;
	if (o->node)
		o->code = domain_snapshot(e, o->node, &o->requested, &s, NULL);
	else
		o->code = snapshots_open(e->snapshots, &domain, &s, NULL);
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

/* An opener whose domain was just looked up. */
static struct opener opener_found(struct fixture *f, const char *path)
{
	struct opener o = {.f = f};
	assert_int_equal(snapshot_resolve(&f->e, path, &o.node, &o.requested, NULL), 0);
	assert_int_equal(o.node->kind, NAMES_DOMAIN);
	assert_int_not_equal(o.requested.tick, 0);
	return o;
}

/* Starts an open while a build runs, and returns when the open waits. An open takes a tick when it
 * begins and holds the table's lock from then until it waits. */
static void begin_and_wait(struct opener *o)
{
	struct bucket *e = &o->f->e;
	uint64_t last = snapshots_time(e->snapshots).tick, now = last;
	begin(o);
	for (now = snapshots_time(e->snapshots).tick; now == last + 1;
	     now = snapshots_time(e->snapshots).tick) {
		last = now;
		usleep(100);
	}
}

/* Starts an open, and waits until an answer to it is held. */
static void begin_held(struct opener *o, const char *key)
{
	gate_hold(&o->f->gate, key);
	begin(o);
	gate_wait(&o->f->gate);
}

/* Ends the hold, and waits for the open. */
static void end_held(struct opener *o)
{
	gate_hold(&o->f->gate, NULL);
	gate_release(&o->f->gate);
	pthread_join(o->thread, NULL);
}

static void assert_owner(const struct opener *o, const char *owner)
{
	assert_int_equal(o->code, 0);
	assert_string_equal(o->owner, owner);
}

/* ---- several opens at once ---- */

static void a_later_open_asks_the_bucket_again(void **state)
{
	struct fixture *f = *state;
	struct opener first = opener_of(f, "d.h5"), second = first;
	begin_held(&first, DOCUMENT);
	put_document(f, DOCUMENT, "after");
	begin_and_wait(&second);
	end_held(&first);
	pthread_join(second.thread, NULL);
	assert_owner(&first, "before");
	assert_owner(&second, "after");
	assert_int_not_equal(first.version, second.version);
	assert_int_equal(f->gate.documents, 2);
}

static void a_later_open_does_not_get_the_failure_of_an_earlier_one(void **state)
{
	struct fixture *f = *state;
	struct opener first = opener_of(f, "d.h5"), second = first;
	assert_int_equal(call_delete(f->e.store, DOCUMENT, NULL, NULL), 0);
	begin_held(&first, DOCUMENT);
	put_document(f, DOCUMENT, "after");
	begin_and_wait(&second);
	end_held(&first);
	pthread_join(second.thread, NULL);
	assert_int_equal(first.code, -ENOENT);
	assert_owner(&second, "after");
}

/* Three opens: the first one builds, the others wait for its end and then need one more build.
 * Returns how many documents were read. pause: time for one of the others to find the build of the
 * other one. */
static unsigned int open_thrice(struct fixture *f, useconds_t pause)
{
	const unsigned int before = f->gate.documents;
	struct opener one = opener_of(f, "d.h5"), openers[3] = {one, one, one};
	begin_held(&openers[0], DOCUMENT);
	begin_and_wait(&openers[1]);
	begin_and_wait(&openers[2]);
	gate_release(&f->gate);
	gate_wait(&f->gate);
	usleep(pause);
	gate_hold(&f->gate, NULL);
	gate_release(&f->gate);
	for (int i = 0; i < 3; i++) {
		pthread_join(openers[i].thread, NULL);
		assert_owner(&openers[i], "before");
	}
	return f->gate.documents - before;
}

/* Tries of a test that needs one of several orders in which threads may run, and its pause. */
enum { TRIES = 50 };
static useconds_t pause_of(unsigned int attempt)
{
	return (useconds_t)1000 << attempt / 5;
}

/* An opener that wakes up too late builds, too, so the pause grows until the build is shared. */
static void opens_that_wait_share_the_next_build(void **state)
{
	struct fixture *f = *state;
	unsigned int documents = 0;
	for (unsigned int i = 0; documents != 2 && i < TRIES; i++) {
		documents = open_thrice(f, pause_of(i));
		assert_in_range(documents, 2, 3);
	}
	assert_int_equal(documents, 2);
}

/* ---- documents that a look-up has read ---- */

static void a_document_older_than_a_build_is_read_again(void **state)
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

/* An open whose look-up has ended before this mount changes the name. path: with or without a
 * snapshot of an earlier open. */
static void open_beside_a_change(struct fixture *f, const char *path, const char *key)
{
	struct opener later = opener_of(f, path);
	f->e.open_ttl_ns = UINT64_C(3600) * 1000000000;
	put_document(f, key, "before");
	struct opener found = opener_found(f, path);
	put_document(f, key, "after");
	snapshots_forget(f->e.snapshots, path);
	open_now(&found);
	names_node_unref(found.node);
	assert_owner(&found, "after");
	open_now(&later);
	assert_owner(&later, "after");
}

static void a_document_older_than_a_change_of_the_name_is_read_again(void **state)
{
	struct fixture *f = *state;
	struct opener first = opener_of(f, "d.h5");
	open_now(&first);
	open_beside_a_change(f, "d.h5", DOCUMENT);
	open_beside_a_change(f, "e.h5", OTHER_DOCUMENT);
}

/* Earlier builds, and those of other domains, do not matter. */
static void a_document_newer_than_all_builds_is_used(void **state)
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

/* While the first build of a domain runs, its document is read, then changed, and another open
 * begins. True if the next build used the document that was read. pause: as above. */
static bool open_with_older(struct fixture *f, const char *path, useconds_t pause)
{
	struct opener first = opener_of(f, path), later = first;
	char key[64];
	snprintf(key, sizeof(key), "%s/.domain.json", path);
	put_document(f, key, "before");
	begin_held(&first, LISTING);
	struct opener found = opener_found(f, path);
	put_document(f, key, "after");
	begin_and_wait(&found);
	begin_and_wait(&later);
	gate_release(&f->gate);
	gate_wait(&f->gate); /* the next build */
	usleep(pause);
	end_held(&first);
	pthread_join(found.thread, NULL);
	pthread_join(later.thread, NULL);
	names_node_unref(found.node);
	assert_owner(&later, "after");
	return strcmp(found.owner, "before") == 0;
}

/* A build is as old as the document that it uses. Which of the two openers that wait makes the next
 * build depends on the order in which they wake up. */
static void an_open_after_the_document_was_read_asks_again(void **state)
{
	bool done = false;
	char path[32];
	for (unsigned int i = 0; !done && i < TRIES; i++) {
		snprintf(path, sizeof(path), "%u.h5", i);
		done = open_with_older(*state, path, pause_of(i));
	}
	assert_true(done);
}

/* ---- limits ---- */

static void set_idle_limit(struct fixture *f, uint64_t bytes)
{
	snapshots_free(f->e.snapshots);
	f->e.snapshots = snapshots_new(&f->e, bytes);
	assert_non_null(f->e.snapshots);
}

static void open_path(struct fixture *f, const char *path, int code)
{
	struct opener o = opener_of(f, path);
	open_now(&o);
	assert_int_equal(o.code, code);
}

/* The table remembers only so many domains, those that were opened first. */
static void a_change_of_a_name_is_remembered(void **state)
{
	struct fixture *f = *state;
	struct opener opened = opener_of(f, "e.h5");
	struct engine_stat st;
	uint64_t listed;
	char path[32];
	put_document(f, OTHER_DOCUMENT, "other");
	set_idle_limit(f, 0); /* only the last image stays */
	open_now(&opened);
	open_path(f, "d.h5", 0);
	struct opener found = opener_found(f, "d.h5");
	put_document(f, DOCUMENT, "after");
	snapshots_forget(f->e.snapshots, "d.h5");
	for (unsigned int i = 0; i < 2 * SNAPSHOTS_REMEMBERED; i++) {
		snprintf(path, sizeof(path), "x%u.h5", i);
		snapshots_forget(f->e.snapshots, path);
	}
	assert_true(snapshots_recall(f->e.snapshots, "e.h5", &st, &listed));
	open_now(&found);
	names_node_unref(found.node);
	assert_owner(&found, "after");
}

/* As many idle images are kept as fit into the limit, and always the one that was used last; the
 * least recently used one is dropped. */
static void idle_images_have_a_limit_in_bytes(void **state)
{
	static const char *const paths[] = {"d.h5", "e.h5", "f.h5"};
	struct fixture *f = *state;
	const struct snapshot_domain domain = {.path = "d.h5", .mount_dir = ""};
	struct snapshot *s;
	char key[64];
	for (size_t i = 0; i < 3; i++) {
		snprintf(key, sizeof(key), "%s/.domain.json", paths[i]);
		put_document(f, key, "all");
	}
	assert_int_equal(snapshots_open(f->e.snapshots, &domain, &s, NULL), 0);
	const uint64_t each = s->memory;
	snapshot_close(s);
	for (uint64_t kept = 1; kept <= 2; kept++) {
		set_idle_limit(f, (kept + 1) * each - 1);
		for (size_t i = 0; i < 3; i++)
			open_path(f, paths[i], 0);
		assert_int_equal(snapshots_live(f->e.snapshots), kept);
		set_idle_limit(f, kept * each);
		for (size_t i = 0; i < 3; i++)
			open_path(f, paths[i], 0);
		assert_int_equal(snapshots_live(f->e.snapshots), kept);
	}
	set_idle_limit(f, 0);
	open_path(f, paths[0], 0);
	assert_int_equal(snapshots_live(f->e.snapshots), 1);
}

/* The table remembers the sizes of SNAPSHOTS_REMEMBERED domains, and forgets the domain that was
 * opened first. */
static void sizes_have_a_limit(void **state)
{
	struct fixture *f = *state;
	struct engine_stat st;
	uint64_t listed;
	char path[32];
	set_idle_limit(f, 0);
	put_document(f, OTHER_DOCUMENT, "other");
	open_path(f, "d.h5", 0);
	open_path(f, "e.h5", 0);
	assert_int_equal(snapshots_live(f->e.snapshots), 1);
	for (unsigned int i = 2; i < SNAPSHOTS_REMEMBERED; i++) {
		snprintf(path, sizeof(path), "missing%u.h5", i);
		open_path(f, path, -ENOENT);
	}
	assert_true(snapshots_recall(f->e.snapshots, "d.h5", &st, &listed));
	open_path(f, "one more.h5", -ENOENT);
	assert_false(snapshots_recall(f->e.snapshots, "d.h5", &st, &listed));
	assert_true(snapshots_recall(f->e.snapshots, "e.h5", &st, &listed));
	/* Opened again, it is the newest. */
	open_path(f, "d.h5", 0);
	assert_true(snapshots_recall(f->e.snapshots, "d.h5", &st, &listed));
}

static void the_size_of_a_deleted_domain_is_forgotten(void **state)
{
	struct fixture *f = *state;
	struct engine_stat st;
	uint64_t listed;
	open_path(f, "d.h5", 0);
	assert_true(snapshots_recall(f->e.snapshots, "d.h5", &st, &listed));
	assert_int_equal(call_delete(f->e.store, DOCUMENT, NULL, NULL), 0);
	open_path(f, "d.h5", -ENOENT);
	assert_false(snapshots_recall(f->e.snapshots, "d.h5", &st, &listed));
}

/* The next open checks it although open_ttl has not passed, and finds that it is still valid. */
static void an_outdated_snapshot_is_kept_and_checked(void **state)
{
	struct fixture *f = *state;
	struct engine_stat before, after;
	uint64_t listed;
	f->e.open_ttl_ns = UINT64_C(3600) * 1000000000;
	open_path(f, "d.h5", 0);
	assert_true(snapshots_recall(f->e.snapshots, "d.h5", &before, &listed));
	snapshots_outdate(f->e.snapshots, "d.h5", NULL);
	assert_false(snapshots_recall(f->e.snapshots, "d.h5", &after, &listed));
	assert_int_equal(snapshots_live(f->e.snapshots), 1);
	open_path(f, "d.h5", 0);
	assert_int_equal(snapshots_live(f->e.snapshots), 1);
	/* The document is deleted, so a check fails. */
	assert_int_equal(call_delete(f->e.store, DOCUMENT, NULL, NULL), 0);
	open_path(f, "d.h5", 0);
	snapshots_outdate(f->e.snapshots, "d.h5", NULL);
	open_path(f, "d.h5", -ENOENT);
	snapshots_outdate(f->e.snapshots, "never opened.h5", NULL);
}

/* A read finds that the domain has changed, while a check of it runs that may have read older
 * documents: the next open checks again. */
static void a_snapshot_that_is_outdated_during_a_check(void **state)
{
	struct fixture *f = *state;
	const struct snapshot_domain domain = {.path = "d.h5", .mount_dir = ""};
	struct opener o = opener_of(f, "d.h5");
	struct snapshot *s;
	assert_int_equal(snapshots_open(f->e.snapshots, &domain, &s, NULL), 0);
	begin_held(&o, DOCUMENT);
	put_document(f, DOCUMENT, "after");
	snapshot_mark_stale(s);
	end_held(&o);
	f->e.open_ttl_ns = UINT64_C(3600) * 1000000000;
	open_now(&o);
	snapshot_close(s);
	assert_owner(&o, "after");
}

static uint64_t charged(const struct fixture *f)
{
	struct budget_stats stats;
	budget_get_stats(f->e.env.budget, &stats);
	return stats.used[BUDGET_TREES];
}

/* A commit has put one document of a domain, with a large text. all: it is a new domain. */
static void commit(struct fixture *f, const char *path, const char *id, bool all)
{
	struct domain_puts *puts = domain_puts_new(f->e.env.budget, all, true);
	char *text = calloc(1, 1 << 20);
	assert_non_null(puts);
	assert_int_equal(domain_puts_add(puts, id, "an etag", text, 1 << 20), 0);
	free(text);
	snapshots_outdate(f->e.snapshots, path, puts);
}

/* The bucket does not have what the commits say, so the open finds what it has. */
static void what_commits_have_put_is_kept_until_the_next_open(void **state)
{
	struct fixture *f = *state;
	commit(f, "d.h5", SMALL_ROOT, false);
	assert_int_equal(charged(f), 0); /* nobody has opened it */
	open_path(f, "d.h5", 0);
	const uint64_t before = charged(f);
	for (int i = 0; i < 3; i++) {
		commit(f, "d.h5", SMALL_ROOT, false);
		commit(f, "d.h5", SMALL_GROUP, false);
	}
	assert_true(charged(f) >= before + (2 << 20) && charged(f) < before + (3 << 20));
	snapshots_outdate(f->e.snapshots, "d.h5", NULL);
	assert_true(charged(f) >= before + (2 << 20));
	open_path(f, "d.h5", 0);
	assert_true(charged(f) < before + (1 << 20));
	commit(f, "d.h5", SMALL_ROOT, false);
	snapshots_forget(f->e.snapshots, "d.h5");
	assert_int_equal(charged(f), 0);
}

static void what_commits_have_put_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct budget_charge charge = {.budget = f->e.env.budget, .use = BUDGET_TREES};
	char path[16];
	for (int i = 0; i < 2 * SNAPSHOTS_PUTS; i++) {
		snprintf(path, sizeof(path), "new%d.h5", i);
		commit(f, path, SMALL_ROOT, true);
	}
	assert_true(charged(f) > (SNAPSHOTS_PUTS << 20));
	assert_true(charged(f) < ((SNAPSHOTS_PUTS + 1) << 20));
	/* Other metadata need the room. */
	assert_int_equal(budget_set(&charge, (64 << 20) - (3 << 20), NULL), 0);
	assert_true(charged(f) <= 64 << 20);
	budget_set(&charge, 0, NULL);
	assert_true(charged(f) > 0 && charged(f) < (3 << 20));
}

/* A commit ends while the domain is opened: the open may have read older documents. */
static void a_commit_during_an_open(void **state)
{
	struct fixture *f = *state;
	struct opener first = opener_of(f, "d.h5");
	open_path(f, "d.h5", 0);
	begin_held(&first, LISTING);
	commit(f, "d.h5", SMALL_ROOT, false);
	end_held(&first);
	assert_owner(&first, "before");
	const uint64_t kept = charged(f);
	open_path(f, "d.h5", 0); /* takes what was put */
	assert_true(charged(f) + (1 << 20) <= kept + (1 << 18));
}

/* A charge that does not fit drops images that are not open, the least recently used one first. */
static void idle_images_make_room_in_the_budget(void **state)
{
	struct fixture *f = *state;
	const struct snapshot_domain domain = {.path = "d.h5", .mount_dir = ""};
	struct budget_charge charge = {.budget = f->e.env.budget, .use = BUDGET_TREES};
	struct snapshot *s;
	put_document(f, OTHER_DOCUMENT, "other");
	open_path(f, "e.h5", 0);
	assert_int_equal(snapshots_open(f->e.snapshots, &domain, &s, NULL), 0);
	assert_int_equal(snapshots_live(f->e.snapshots), 2);
	/* While both images are charged, it does not fit. */
	assert_int_equal(budget_set(&charge, (64 << 20) - 2 * s->memory + 1, NULL), 0);
	assert_int_equal(snapshots_live(f->e.snapshots), 1);
	/* An image that is open stays, and the charge fails. */
	assert_int_equal(budget_set(&charge, (64 << 20) - s->memory + 1, NULL), -ENOMEM);
	assert_int_equal(snapshots_live(f->e.snapshots), 1);
	budget_set(&charge, 0, NULL);
	snapshot_close(s);
}

/* If a domain and the texts of its documents fit, but not the image, too, the texts are dropped. */
static void texts_make_room_for_an_image(void **state)
{
	enum { STEP = 64 };
	struct fixture *f = *state;
	const struct snapshot_domain domain = {.path = "d.h5", .mount_dir = ""};
	struct budget_charge charge = {.budget = f->e.env.budget, .use = BUDGET_TREES};
	struct snapshot *s;
	const void *text;
	size_t len;
	assert_int_equal(snapshots_open(f->e.snapshots, &domain, &s, NULL), 0);
	assert_string_not_equal(domain_object_version(s->domain, 0, &text, &len), "");
	assert_non_null(text);
	assert_true(len > STEP);
	uint64_t room = domain_memory(s->domain);
	int rc;
	do {
		snapshot_close(s);
		snapshots_forget(f->e.snapshots, "d.h5");
		s = NULL;
		room += STEP;
		assert_int_equal(budget_set(&charge, (64 << 20) - room, NULL), 0);
		rc = snapshots_open(f->e.snapshots, &domain, &s, NULL);
		budget_set(&charge, 0, NULL);
	} while (rc == -ENOMEM);
	assert_int_equal(rc, 0);
	domain_object_version(s->domain, 0, &text, &len);
	assert_null(text);
	snapshot_close(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_later_open_asks_the_bucket_again),
		TEST(a_later_open_does_not_get_the_failure_of_an_earlier_one),
		TEST(opens_that_wait_share_the_next_build),
		TEST(a_document_older_than_a_build_is_read_again),
		TEST(a_document_older_than_a_change_of_the_name_is_read_again),
		TEST(a_change_of_a_name_is_remembered),
		TEST(a_document_newer_than_all_builds_is_used),
		TEST(an_open_after_the_document_was_read_asks_again),
		TEST(idle_images_have_a_limit_in_bytes),
		TEST(sizes_have_a_limit),
		TEST(the_size_of_a_deleted_domain_is_forgotten),
		TEST(what_commits_have_put_is_kept_until_the_next_open),
		TEST(what_commits_have_put_is_bounded),
		TEST(a_commit_during_an_open),
		TEST(an_outdated_snapshot_is_kept_and_checked),
		TEST(a_snapshot_that_is_outdated_during_a_check),
		TEST(idle_images_make_room_in_the_budget),
		TEST(texts_make_room_for_an_image),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
