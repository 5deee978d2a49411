/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 404 that is not in the service's own words: from a HEAD, which has no body, from a service
 * that sends none, or from somebody in between. Whether the object is absent is asked once more in
 * another way, by a listing that begins with its key. What such a listing says of the keys that
 * follow is remembered for a second, so that a reader of a sparse dataset costs pages of a listing
 * and not one for each chunk.
 *
 *   the listing        the object is
 *   does not name it   absent
 *   names it           there: the 404 was wrong. Asked again when that was remembered, else -EIO
 *   fails              unknown
 *
 * Threads: `lock` guards the table; no request is sent and none is completed under it. Requests
 * whose prefix is being listed wait for that listing.
 */
#include "internal.h"

#include "list_xml.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { PAGES = 32 };
static const uint64_t valid_ns = UINT64_C(1000) * 1000 * 1000;

/* Keys below a prefix, greater than `after`: all, or up to the last of the page when it has more.
 */
struct listed {
	char prefix[STORE_KEY_MAX + 1], after[STORE_KEY_MAX + 1];
	struct store_page page;
	uint64_t at_ns; /* by env->now(); 0: nothing is known */
	bool asking;
	struct s3_flight *waiting;
};

struct s3_doubts {
	const struct env *env;
	pthread_mutex_t lock;
	struct listed pages[PAGES];
};

struct s3_doubts *s3_doubts_new(const struct env *env)
{
	struct s3_doubts *doubts = calloc(1, sizeof(*doubts));
	if (!doubts)
		return NULL;
	doubts->env = env;
	pthread_mutex_init(&doubts->lock, NULL);
	return doubts;
}

void s3_doubts_free(struct s3_doubts *doubts)
{
	if (!doubts)
		return;
	for (int i = 0; i < PAGES; i++)
		store_page_release(&doubts->pages[i].page);
	pthread_mutex_destroy(&doubts->lock);
	free(doubts);
}

/* ---- what a listing says ---- */

static int compare_item(const void *key, const void *item)
{
	return strcmp(key, ((const struct store_item *)item)->key);
}

static bool names(const struct store_page *page, const char *key)
{
	return page->n && bsearch(key, page->items, page->n, sizeof(*page->items), compare_item);
}

static bool covers(const struct store_page *page, const char *after, const char *key)
{
	if (strcmp(key, after) <= 0)
		return false;
	return !page->more || (page->n && strcmp(key, page->items[page->n - 1].key) <= 0);
}

/* The directory part of a key, with its slash. */
static void prefix_of(const char *key, char prefix[STORE_KEY_MAX + 1])
{
	const char *slash = strrchr(key, '/');
	const size_t n = slash ? (size_t)(slash - key) + 1 : 0;
	memcpy(prefix, key, n);
	prefix[n] = '\0';
}

/* A text that is smaller than the key, and than few others: the key without its last character. */
static void before(const char *key, char after[STORE_KEY_MAX + 1])
{
	size_t n = strlen(key) - 1;
	while (n && ((unsigned char)key[n] & 0xc0) == 0x80)
		n--;
	memcpy(after, key, n);
	after[n] = '\0';
}

static struct s3_list_query query_of(const char *prefix, const char *after)
{
	return (struct s3_list_query){
		.prefix = prefix, .start_after = after, .complete = true, .max = STORE_PAGE_MAX};
}

static void wrong_404(struct s3_flight *f)
{
	err_wrap(&f->req->answer.err, -EIO, "the answer is wrong, a listing names the object");
	f->req->answer.err.code = -EIO;
	s3_fail(f, -EIO);
}

/* ---- asking ---- */

static void took(struct s3_flight *f);
static void took_key(struct s3_flight *f);

/* The keys that begin with the key, of which it would be the first. */
static struct s3_list_query query_of_key(const char *key)
{
	return (struct s3_list_query){.prefix = key, .complete = true, .max = 2};
}

static void ask_for_key(struct s3_flight *f)
{
	const struct s3_list_query one = query_of_key(f->req->key);
	s3_send_list(f, &one, NULL, took_key);
}

static struct listed *find_asked_locked(struct s3_doubts *doubts, const char *prefix)
{
	for (int i = 0; i < PAGES; i++)
		if (doubts->pages[i].asking && strcmp(doubts->pages[i].prefix, prefix) == 0)
			return &doubts->pages[i];
	return NULL;
}

/* The place for another listing: an unused one, or the oldest. NULL when all are in use. */
static struct listed *take_place_locked(struct s3_doubts *doubts)
{
	struct listed *place = NULL;
	for (int i = 0; i < PAGES; i++) {
		struct listed *other = &doubts->pages[i];
		if (!other->asking && (!place || other->at_ns < place->at_ns))
			place = other;
	}
	return place;
}

/* A prefix may have several pages: chunks that are near each other have keys that are not. */
static bool is_known_absent_locked(struct s3_doubts *doubts, const char *prefix, const char *key)
{
	const uint64_t now = doubts->env->now(doubts->env);
	for (int i = 0; i < PAGES; i++) {
		const struct listed *l = &doubts->pages[i];
		if (!l->asking && l->at_ns && now - l->at_ns < valid_ns &&
		    strcmp(l->prefix, prefix) == 0 && covers(&l->page, l->after, key))
			return !names(&l->page, key);
	}
	return false;
}

static void doubt_get(struct s3_flight *f)
{
	struct s3_doubts *doubts = f->s->doubts;
	const char *key = f->req->key;
	char prefix[STORE_KEY_MAX + 1], after[STORE_KEY_MAX + 1];
	prefix_of(key, prefix);
	before(key, after);
	pthread_mutex_lock(&doubts->lock);
	const bool absent = is_known_absent_locked(doubts, prefix, key);
	struct listed *asked = absent ? NULL : find_asked_locked(doubts, prefix);
	if (asked) {
		f->doubting = asked->waiting;
		asked->waiting = f;
	} else if (!absent) {
		struct listed *place = take_place_locked(doubts);
		f->listing = place;
		if (place) {
			store_page_release(&place->page);
			*place = (struct listed){.asking = true};
			strcpy(place->prefix, prefix);
			strcpy(place->after, after);
		}
	}
	pthread_mutex_unlock(&doubts->lock);
	if (absent) {
		s3_absent(f, STORE_LISTED);
	} else if (!asked) {
		const struct s3_list_query query = query_of(prefix, after);
		s3_send_list(f, &query, NULL, took);
	}
}

/* A get may be one of many in a sparse dataset; the answer to a head never proves absence, and few
 * are made. */
void s3_doubt(struct s3_flight *f)
{
	if (f->req->op == STORE_HEAD)
		ask_for_key(f);
	else
		doubt_get(f);
}

/* ---- the listing ---- */

/* Puts the page into its place, or nothing. Returns those that wait for it. */
static struct s3_flight *keep(struct s3_flight *f, struct store_page *page)
{
	struct s3_doubts *doubts = f->s->doubts;
	struct listed *place = f->listing;
	if (!place)
		return NULL;
	pthread_mutex_lock(&doubts->lock);
	struct s3_flight *waiting = place->waiting;
	place->waiting = NULL;
	place->asking = false;
	if (page) {
		place->page = *page;
		*page = (struct store_page){0};
		place->at_ns = max_u64(doubts->env->now(doubts->env), 1);
	}
	pthread_mutex_unlock(&doubts->lock);
	return waiting;
}

/* Those that waited for a listing that failed fail like it; those that waited for one whose own
 * request was cancelled, or for a page, look again. */
static void go_on(struct s3_flight *waiting, const struct err *failure)
{
	while (waiting) {
		struct s3_flight *next = waiting->doubting;
		if (failure && failure->code != -ECANCELED) {
			waiting->req->answer.err = *failure;
			s3_fail(waiting, failure->code);
		} else {
			doubt_get(waiting);
		}
		waiting = next;
	}
}

static void took_key(struct s3_flight *f)
{
	const char *key = f->req->key;
	struct err *err = &f->req->answer.err;
	struct s3_list_result result;
	const struct s3_list_query query = query_of_key(key);
	int rc = s3_take_list(f, &query, &result, err);
	if (rc == 0 && result.page.n == 0 && result.page.more)
		rc = err_set(err, -EIO, "a listing does not tell whether %s is there", key);
	const bool there = rc == 0 && names(&result.page, key);
	s3_list_release(&result);
	if (rc)
		s3_fail(f, rc);
	else if (there)
		wrong_404(f);
	else
		s3_absent(f, STORE_LISTED);
}

static void took(struct s3_flight *f)
{
	const char *key = f->req->key;
	char prefix[STORE_KEY_MAX + 1], after[STORE_KEY_MAX + 1];
	struct err *err = &f->req->answer.err;
	struct s3_list_result result;
	prefix_of(key, prefix);
	before(key, after);
	const struct s3_list_query query = query_of(prefix, after);
	int rc = s3_take_list(f, &query, &result, err);
	/* More keys than a page holds lie before the key: "2" follows "1000". */
	const bool told = rc || covers(&result.page, after, key);
	const bool there = rc == 0 && names(&result.page, key);
	struct s3_flight *waiting = keep(f, rc ? NULL : &result.page);
	s3_list_release(&result);
	if (rc) {
		const struct err why = *err;
		s3_fail(f, rc);
		go_on(waiting, &why);
		return;
	}
	if (!told) {
		ask_for_key(f);
	} else if (there) {
		wrong_404(f);
	} else {
		s3_absent(f, STORE_LISTED);
	}
	go_on(waiting, NULL);
}
