/* SPDX-License-Identifier: Apache-2.0 */
/* See shared.h: the judge. No state. */
#include "shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <hsmount/engine.h>
#include <hsmount/recover.h>

/* Where the file of a session is. */
enum { PLACE_UNKNOWN = SHARED_NAMES, PLACE_NOWHERE };

struct judge {
	struct shared *p;
	const struct shared_mount *m;
	unsigned int number; /* of the mount */
};

static const char *const kinds[] = {
	[SHARED_MAKE] = "create",   [SHARED_CUT] = "cut",   [SHARED_REMOVE] = "remove",
	[SHARED_RENAME] = "rename", [SHARED_SAVE] = "save",
};

static void describe(const struct judge *j)
{
	static const char *const outcomes[] = {"no effect", "done", "maybe"};
	struct str *out = &j->p->faults;
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *c = &j->m->calls[i];
		str_addf(out, "    [%llu, %lld] %s %u %u of draft %llx: %s\n",
			 (unsigned long long)c->begin, (long long)c->end, kinds[c->kind], c->name,
			 c->to, (unsigned long long)c->draft, outcomes[c->outcome]);
	}
	for (unsigned int i = 0; i < j->m->nsessions; i++) {
		const struct shared_session *s = &j->m->sessions[i];
		str_addf(out, "    session %u of %u: opened [%llu, %llu], draft %llx, closed %lld;",
			 i, s->name, (unsigned long long)s->open_begin,
			 (unsigned long long)s->open_end, (unsigned long long)s->draft,
			 (long long)s->close_begin);
		for (unsigned int k = 0; k < s->nwrites; k++)
			str_addf(out, " [%llu, %lld]%s", (unsigned long long)s->writes[k].begin,
				 (long long)s->writes[k].end, s->writes[k].done ? "" : " failed");
		str_addf(out, "\n");
	}
}

#define FAULT(j, ...) player_fault(&(j)->p->faults, "shared files", __VA_ARGS__)

/* ---- drafts ---- */

/* Whether all bytes of a draft may have vanished after a moment. */
static bool is_cut_after(const struct judge *j, uint64_t draft, uint64_t moment)
{
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *c = &j->m->calls[i];
		if (c->kind == SHARED_CUT && c->draft == draft && c->end > moment)
			return true;
	}
	return false;
}

/* The number of the last write of a session that has returned before a moment, and is in its draft;
 * 0: none for certain. */
static unsigned int written(const struct judge *j, const struct shared_session *s, uint64_t before)
{
	unsigned int n = 0;
	while (n < s->nwrites && s->writes[n].end < before)
		n++;
	/* What a write has done that has failed is not known. */
	return n && s->writes[n - 1].done && !is_cut_after(j, s->draft, s->writes[n - 1].begin) ? n
												: 0;
}

/* The first write to a draft that has failed, or NULL. *n: how many have. */
static const struct shared_write *first_loss(const struct judge *j, uint64_t draft, unsigned int *n)
{
	const struct shared_write *first = NULL;
	*n = 0;
	for (unsigned int i = 0; i < j->m->nsessions; i++) {
		const struct shared_session *s = &j->m->sessions[i];
		for (unsigned int k = 0; s->draft == draft && k < s->nwrites; k++) {
			const struct shared_write *w = &s->writes[k];
			if (w->done)
				continue;
			/* The missing part of common bytes may come from another session. */
			*n += w->is_common ? 2 : 1;
			first = !first || w->begin < first->begin ? w : first;
		}
	}
	return first;
}

/* The number of the last write that a close or fsync has acknowledged before a moment. One after a
 * write that has failed may do nothing. */
static unsigned int saved(const struct judge *j, const struct shared_session *s, uint64_t before)
{
	unsigned int n = 0, losses;
	const struct shared_write *loss = first_loss(j, s->draft, &losses);
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *c = &j->m->calls[i];
		if (c->kind == SHARED_SAVE && c->outcome == SHARED_DONE && c->draft == s->draft &&
		    c->end < before && (!loss || c->end < loss->begin))
			n = max_u64(n, written(j, s, c->begin));
	}
	return n && !is_cut_after(j, s->draft, s->writes[n - 1].begin) ? n : 0;
}

/* ---- names ---- */

static bool touches(const struct shared_call *c, unsigned int name)
{
	return c->kind != SHARED_SAVE && c->outcome != SHARED_NONE &&
	       (c->name == name || (c->kind == SHARED_RENAME && c->to == name));
}

static bool is_renamed_to(const struct judge *j, unsigned int name)
{
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *c = &j->m->calls[i];
		if (c->kind == SHARED_RENAME && c->to == name && c->outcome != SHARED_NONE)
			return true;
	}
	return false;
}

/* Whether the machine loses its power in this life of the mount or in a later one. */
static bool loses_power(const struct shared_mount *m, unsigned int life)
{
	for (; life <= m->lives; life++)
		if (m->power_lives >> life % 64 & 1)
			return true;
	return false;
}

/* Whether a mount before that of a call has left a commit that later ones repeat: of a draft, or,
 * if that is 0, of one that may have the name. That it shall not be repeated because the file was
 * removed need not be durable when the power fails. */
static bool is_repeated(const struct judge *j, const struct shared_call *c, uint64_t draft,
			unsigned int name)
{
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *o = &j->m->calls[i];
		const bool is_earlier = o->life < c->life || loses_power(j->m, c->life);
		const bool is_meant =
			draft ? o->draft == draft : o->name == name || is_renamed_to(j, name);
		if (o->kind == SHARED_SAVE && o->outcome == SHARED_MAYBE && is_earlier && is_meant)
			return true;
	}
	return false;
}

/* Whether another call on a name goes on at the same time. */
static bool has_rival(const struct judge *j, const struct shared_call *c, unsigned int name)
{
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *o = &j->m->calls[i];
		if (o != c && touches(o, name) && o->end > c->begin && o->begin < c->end)
			return true;
	}
	return false;
}

/* Where the file of a session is between two moments. */
static unsigned int place_of(const struct judge *j, const struct shared_session *s, uint64_t from,
			     uint64_t until)
{
	unsigned int place = s->name;
	uint64_t last = s->open_end;
	for (unsigned int i = 0; i < j->m->ncalls && place < SHARED_NAMES; i++) {
		const struct shared_call *c = &j->m->calls[i];
		if (!touches(c, place) || c->kind == SHARED_MAKE || c->end < s->open_begin ||
		    c->begin > until ||
		    (c->kind == SHARED_CUT && c->draft == s->draft && c->begin < s->open_end))
			continue;
		if (c->kind == SHARED_CUT || c->outcome == SHARED_MAYBE || c->begin < last ||
		    c->end > from || has_rival(j, c, c->name) || has_rival(j, c, c->to) ||
		    (c->to == place && c->is_alone) || is_repeated(j, c, s->draft, place))
			return PLACE_UNKNOWN;
		last = c->end;
		place = c->kind == SHARED_RENAME && c->name == place ? c->to : PLACE_NOWHERE;
	}
	return place;
}

/* Whether a name is there between two moments: 1, or 0, or -1 if that is not certain. */
static int presence(const struct judge *j, unsigned int name, uint64_t from, uint64_t until)
{
	const struct shared_call *last = NULL;
	uint64_t latest = 0;
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *c = &j->m->calls[i];
		if (!touches(c, name) || c->begin > until || (c->kind == SHARED_CUT && !c->makes))
			continue;
		if (c->outcome == SHARED_MAYBE || c->end > from || c->begin < latest)
			return -1;
		latest = c->end;
		last = c;
	}
	if (!last)
		return 0;
	if (last->kind == SHARED_REMOVE || (last->kind == SHARED_RENAME && last->name == name))
		return is_repeated(j, last, 0, name) ? -1 : 0;
	return 1;
}

/* ---- views ---- */

static bool is_of_draft(const struct shared_view *v, const struct shared_session *s)
{
	return v->kind == SHARED_DRAFT && v->by->draft == s->draft;
}

/* The moments between which the name of a view was looked up. */
static uint64_t from_of(const struct shared_view *v)
{
	return v->kind == SHARED_DRAFT ? v->by->open_begin : v->begin;
}

static uint64_t until_of(const struct shared_view *v)
{
	return v->kind == SHARED_DRAFT ? v->by->open_end : v->opened;
}

/* The number of the first write of a session that a view must show. */
static unsigned int least(const struct judge *j, const struct shared_session *s,
			  const struct shared_view *v)
{
	if (is_of_draft(v, s))
		return written(j, s, v->begin);
	if (place_of(j, s, from_of(v), until_of(v)) != v->name ||
	    (v->kind == SHARED_DRAFT && is_cut_after(j, v->by->draft, 0)))
		return 0;
	return saved(j, s, from_of(v));
}

static bool may_be_torn(const struct shared_session *s, const struct shared_view *v)
{
	for (unsigned int i = 0; i < s->nwrites; i++)
		if (!s->writes[i].done ||
		    (s->writes[i].end > v->begin && s->writes[i].begin < v->end))
			return true;
	return false;
}

/* Whether a commit that may have stored a write had begun, and had not returned before it. */
static bool may_be_stored(const struct judge *j, uint64_t draft, const struct shared_write *w)
{
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *c = &j->m->calls[i];
		if (c->kind == SHARED_SAVE && c->draft == draft && c->returned > w->begin)
			return true;
	}
	return false;
}

static void judge_cell(const struct judge *j, const struct shared_view *v, unsigned int i)
{
	static const char *const names[] = {"look-up", "reader", "writer", "fresh mount"};
	const struct shared_session *s = &j->m->sessions[i];
	const unsigned int must = least(j, s, v);
	const bool returns = !is_of_draft(v, s) && !j->m->is_late &&
			     place_of(j, s, from_of(v), until_of(v)) == PLACE_NOWHERE;
	if (v->is_there && !v->has_cells) {
		if (must && v->size < shared_cell_at(i) + shared_cell_size(i))
			FAULT(j,
			      "a %s of %u at %llu shows the size %llu, without the write %u of "
			      "session %u",
			      names[v->kind], v->name, (unsigned long long)v->begin,
			      (unsigned long long)v->size, must, i);
	} else if (v->cells[i] == SHARED_TORN) {
		if (!may_be_torn(s, v))
			FAULT(j,
			      "a %s of %u at %llu shows bytes in the place of session %u that it "
			      "has not written",
			      names[v->kind], v->name, (unsigned long long)v->begin, i);
	} else if (v->cells[i] < must) {
		FAULT(j, "a %s of %u at %llu shows write %u of session %u, and must show %u",
		      names[v->kind], v->name, (unsigned long long)v->begin, v->cells[i], i, must);
	} else if (v->kind == SHARED_END && v->cells[i] &&
		   !may_be_stored(j, s->draft, &s->writes[v->cells[i] - 1])) {
		FAULT(j, "%u has write %u of session %u, which no commit has stored", v->name,
		      v->cells[i], i);
	} else if (returns && v->cells[i]) {
		FAULT(j, "a %s of %u at %llu shows write %u of session %u, whose file is gone",
		      names[v->kind], v->name, (unsigned long long)v->begin, v->cells[i], i);
	}
}

static void judge_view(const struct judge *j, const struct shared_view *v)
{
	if (v->is_lost && !j->m->has_failed && place_of(j, v->by, v->begin, v->end) < SHARED_NAMES)
		FAULT(j, "a writer of %u at %llu cannot read its file", v->name,
		      (unsigned long long)v->begin);
	const int there = v->kind == SHARED_DRAFT ? -1 : presence(j, v->name, v->begin, v->opened);
	if (there == 1 && !v->is_there && !j->m->has_failed)
		FAULT(j, "%u is absent at %llu", v->name, (unsigned long long)v->begin);
	if (there == 0 && v->is_there && !j->m->is_late)
		FAULT(j, "%u is there at %llu", v->name, (unsigned long long)v->begin);
	for (unsigned int i = 0; i < j->m->nsessions; i++)
		judge_cell(j, v, i);
}

/* ---- sessions ---- */

/* Two sessions of a name that are open at the same time have one draft. */
static void judge_drafts(const struct judge *j, const struct shared_session *a,
			 const struct shared_session *b)
{
	const uint64_t from = min_u64(a->open_begin, b->open_begin);
	const uint64_t until = max_u64(a->open_end, b->open_end);
	if (a->name != b->name || a->draft == b->draft ||
	    until > min_u64(a->close_begin, b->close_begin))
		return;
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *c = &j->m->calls[i];
		if (touches(c, a->name) && (c->kind == SHARED_REMOVE || c->kind == SHARED_RENAME) &&
		    c->end > from && c->begin < until)
			return;
	}
	FAULT(j, "%u has two drafts, %llx and %llx", a->name, (unsigned long long)a->draft,
	      (unsigned long long)b->draft);
}

/* ---- the end ---- */

/* The bucket has a draft as it was at one moment. */
static void judge_moment(const struct judge *j, const struct shared_view *v, uint64_t draft)
{
	uint64_t from = 0, until = UINT64_MAX;
	for (unsigned int i = 0; i < j->m->nsessions; i++) {
		const struct shared_session *s = &j->m->sessions[i];
		const unsigned int n = v->cells[i];
		if (s->draft != draft || n == SHARED_TORN)
			continue;
		if (n)
			from = max_u64(from, s->writes[n - 1].begin);
		if (n < s->nwrites && s->writes[n].done)
			until = min_u64(until, s->writes[n].end);
	}
	if (from > until && !is_cut_after(j, draft, 0))
		FAULT(j, "%u has a write that began at %llu, and lacks one that ended at %llu",
		      v->name, (unsigned long long)from, (unsigned long long)until);
}

/* Whether the bucket certainly had a file of this name when a session opened it. */
static bool had_file(const struct judge *j, const struct shared_session *s)
{
	for (unsigned int i = 0; i < j->m->nsessions; i++) {
		const struct shared_session *o = &j->m->sessions[i];
		if (saved(j, o, s->open_begin) &&
		    place_of(j, o, s->open_begin, s->open_end) == s->name)
			return true;
	}
	return false;
}

/* A file with a part that could not be written has not replaced the file of the bucket. */
static void judge_loss(const struct judge *j, const struct shared_view *v, uint64_t draft)
{
	unsigned int losses, stored = 0;
	const struct shared_write *loss = first_loss(j, draft, &losses);
	/* Which one was repaired is not judged. */
	if (losses != 1 || is_cut_after(j, draft, 0))
		return;
	for (unsigned int i = 0; i < j->m->nsessions; i++) {
		const struct shared_session *s = &j->m->sessions[i];
		if (s->draft != draft)
			continue;
		if (loss >= s->writes && loss + 1 < s->writes + s->nwrites)
			return;
		stored |= saved(j, s, loss->begin) || had_file(j, s);
	}
	for (unsigned int i = 0; stored && i < j->m->nsessions; i++) {
		const struct shared_session *s = &j->m->sessions[i];
		const unsigned int n = v->cells[i];
		if (s->draft == draft && n && n != SHARED_TORN &&
		    s->writes[n - 1].begin > loss->end)
			FAULT(j,
			      "%u has write %u of session %u, and a part of it could not be "
			      "written",
			      v->name, n, i);
	}
}

static void judge_end(const struct judge *j, struct engine *e, unsigned int name)
{
	struct shared_view v = {.kind = SHARED_END,
				.name = name,
				.begin = UINT64_MAX - 1,
				.opened = UINT64_MAX - 1,
				.end = UINT64_MAX - 1};
	char path[SHARED_PATH];
	struct engine_file *f;
	struct err err = ERR_INIT;
	shared_path(j->p, j->number, name, path);
	int rc = engine_file_open(e, path, &f, &err);
	v.is_there = !rc;
	v.has_cells = rc == -ENOENT;
	if (!rc) {
		rc = shared_read_cells(j->m, f, &v, &err);
		engine_file_close(f);
	}
	if (rc && rc != -ENOENT)
		FAULT(j, "%u cannot be read at the end: %s", name, err.msg);
	judge_view(j, &v);
	for (unsigned int i = 0; i < j->m->nsessions; i++) {
		judge_moment(j, &v, j->m->sessions[i].draft);
		judge_loss(j, &v, j->m->sessions[i].draft);
	}
}

/* Nobody else has changed what the mount has seen. After a request without an answer, a file that
 * is written again is a conflict with itself. */
static void judge_conflicts(const struct judge *j)
{
	for (unsigned int i = 0; i < j->m->ncalls; i++) {
		const struct shared_call *c = &j->m->calls[i];
		if (c->kind == SHARED_SAVE && c->rc == -ESTALE && j->m->is_sound)
			FAULT(j, "a commit of %u at %llu meets another program, and there is none",
			      c->name, (unsigned long long)c->begin);
	}
}

/* Whether a call on a domain has had no answer, so that its storage may stay. */
static bool may_leave(const struct shared_mount *m)
{
	for (unsigned int i = 0; i < m->ncalls; i++)
		if (m->calls[i].name >= SHARED_DOMAINS && m->calls[i].outcome == SHARED_MAYBE)
			return true;
	return false;
}

/* ---- the journal ---- */

struct left {
	struct shared *p;
	struct engine_drafts *drafts;
	const struct engine_options *bucket;
};

static int judge_left(void *arg, const struct engine_draft_item *item)
{
	struct left *l = arg;
	const struct left *j = l;
	struct engine_draft *d;
	struct err err = ERR_INIT;
	if (item->state == ENGINE_DRAFT_UNREADABLE)
		FAULT(j, "the draft %s of %s is unreadable: %s", item->id, item->path, item->why);
	/* What lies beneath may have changed. */
	if (item->state != ENGINE_DRAFT_WAITING ||
	    engine_draft_open(l->drafts, item->id, l->bucket, &d, &err))
		return 0;
	const uint64_t size = engine_draft_size(d);
	uint8_t *bytes = malloc(size + 1);
	if (bytes && engine_draft_read(d, bytes, size, 0, &err) == -EBADMSG)
		FAULT(j, "the draft %s of %s is damaged: %s", item->id, item->path, err.msg);
	free(bytes);
	engine_draft_close(d);
	return 0;
}

void shared_check_journal(struct shared *p, const struct box *b, const char *journal,
			  const struct engine_options *bucket)
{
	struct left l = {.p = p, .bucket = bucket};
	if (b->was_harmed || b->powers || b->disk_faults ||
	    engine_drafts_open(journal, &l.drafts, NULL))
		return;
	engine_drafts_list(l.drafts, NULL, judge_left, &l, NULL);
	engine_drafts_close(l.drafts);
}

/* ---- a mount ---- */

static void judge_mount(struct shared *p, struct engine *e, unsigned int number)
{
	const struct judge j = {.p = p, .m = &p->of[number], .number = number};
	const size_t before = p->faults.b.len;
	for (unsigned int i = 0; i < j.m->nviews; i++)
		judge_view(&j, &j.m->views[i]);
	for (unsigned int i = 0; i < j.m->nsessions; i++)
		for (unsigned int k = 0; k < i; k++)
			judge_drafts(&j, &j.m->sessions[k], &j.m->sessions[i]);
	judge_conflicts(&j);
	for (unsigned int i = 0; i < SHARED_NAMES; i++)
		judge_end(&j, e, i);
	if (p->faults.b.len > before)
		describe(&j);
}

void shared_check(struct shared *p, struct engine *e, const struct box *boxes, unsigned int n)
{
	p->acts = 0;
	for (unsigned int i = 0; i < n; i++) {
		const struct box *b = &boxes[i];
		struct shared_mount *m = &p->of[i];
		m->is_sound = !b->line.faults && !b->disk_faults;
		m->has_failed = b->kills || !m->is_sound;
		m->is_late = b->line.is_late;
		m->power_lives = b->power_lives;
		m->lives = b->lives;
		judge_mount(p, e, i);
		p->may_leave |= may_leave(m);
		p->acts += m->ncalls + m->nviews;
		memset(m, 0, sizeof(*m));
	}
	p->part++;
}
