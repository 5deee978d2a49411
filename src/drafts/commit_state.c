/* SPDX-License-Identifier: Apache-2.0 */
/* See commit_state.h and draft_commit.h. */
#include <drafts/commit_state.h>
#include <drafts/draft_commit.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include <base/mem.h>
#include <hsmount/log.h>
#include <names/names.h>

/* ---- transitions ---- */

#define TO(state) (1U << COMMIT_##state)
#define FAILURE	  (TO(FAILED) | TO(STALE))

/* The states that may follow. An attempt begins once more if it makes another plan for the change
 * of a domain. It goes from NONE to SHOWN if an earlier attempt has put everything but the
 * document, and from SHOWN to BEGUN if the bucket has certainly refused the document. What others
 * may have seen is never refused for good. */
static const unsigned int next[] = {
	[COMMIT_NONE] = TO(BEGUN) | TO(SHOWN) | TO(ENDED) | FAILURE | TO(REFUSED) | TO(UNFIT),
	[COMMIT_BEGUN] = TO(BEGUN) | TO(SENT) | TO(CLEARING) | TO(SHOWN) | TO(ENDED) | FAILURE |
			 TO(REFUSED) | TO(UNFIT),
	[COMMIT_SENT] = TO(SHOWN) | TO(ENDED) | FAILURE,
	[COMMIT_CLEARING] = TO(SHOWN) | TO(ENDED) | FAILURE | TO(REFUSED),
	[COMMIT_SHOWN] = TO(BEGUN) | TO(ENDED) | FAILURE,
	[COMMIT_UNFIT] = 0,
};

bool commit_may_follow(enum commit_state from, enum commit_state to)
{
	return next[from] >> to & 1;
}

/* Whatever the bucket may have of a commit, the journal knows of it, so that a later process can
 * finish it or delete its objects. */
bool commit_check(const struct commit_run *r)
{
	const struct commit_record m = commit_record_of(r->draft);
	const bool has_begun = r->state >= COMMIT_BEGUN && r->state <= COMMIT_SHOWN;
	return r->oldest <= r->number && r->number <= r->end && r->end <= r->number + 1 &&
	       (!has_begun || (commit_is_running(&m) && m.number <= r->number)) &&
	       (r->state != COMMIT_UNFIT || r->end == r->number) &&
	       (r->state != COMMIT_REFUSED || (m.state == COMMIT_REFUSED && m.number == r->number));
}

enum commit_state commit_failure(int rc)
{
	return rc == -ESTALE ? COMMIT_STALE : COMMIT_FAILED;
}

bool commit_is_conflict(enum commit_state s)
{
	return s == COMMIT_STALE || s == COMMIT_REFUSED;
}

void commit_go(struct commit_run *r, enum commit_state to)
{
	assert(commit_may_follow(r->state, to));
	r->state = to;
	assert(commit_check(r));
}

int commit_note(struct commit_run *r, enum commit_state to, struct err *err)
{
	const struct commit_record m = {.number = r->number,
					.failed = to == COMMIT_ENDED ? 0 : r->number - r->oldest,
					.state = to,
					.is_last = r->is_last};
	const int rc = draft_mark(r->draft, commit_record_encode(&m), err);
	if (rc && rc != -EROFS)
		return rc;
	commit_go(r, to);
	return 0;
}

void commit_end(struct commit_run *r, struct log *log)
{
	struct err why = ERR_INIT;
	if (!commit_note(r, COMMIT_ENDED, &why))
		return;
	commit_go(r, COMMIT_ENDED);
	log_warning(log, "%s: the journal does not know that it is complete: %s",
		    draft_get_about(r->draft)->name, why.msg);
}

/* ---- the mark in the journal ---- */

enum {
	/* Bits of a mark. */
	RUNNING_BIT = DRAFT_MARK_RUNNING,
	LAST_BIT = 1,
	FAILED_BIT = 2, /* … to 30 */
	REFUSED_BIT = 31,
	NUMBER_BIT = 32,
};
static const uint32_t failed_max = (UINT32_C(1) << (REFUSED_BIT - FAILED_BIT)) - 1;

bool commit_is_running(const struct commit_record *m)
{
	return m->state == COMMIT_BEGUN || m->state == COMMIT_REFUSED;
}

uint64_t commit_record_encode(const struct commit_record *m)
{
	return (uint64_t)m->number << NUMBER_BIT |
	       (uint64_t)(m->state == COMMIT_REFUSED) << REFUSED_BIT |
	       min_u64(m->failed, failed_max) << FAILED_BIT | (uint64_t)m->is_last << LAST_BIT |
	       (uint64_t)commit_is_running(m) << RUNNING_BIT;
}

static enum commit_state decode_state(uint64_t mark)
{
	if (mark >> RUNNING_BIT & 1)
		return mark >> REFUSED_BIT & 1 ? COMMIT_REFUSED : COMMIT_BEGUN;
	return mark >> NUMBER_BIT ? COMMIT_ENDED : COMMIT_NONE;
}

struct commit_record commit_record_decode(uint64_t mark)
{
	return (struct commit_record){
		.number = (uint32_t)(mark >> NUMBER_BIT),
		.failed = (uint32_t)(mark >> FAILED_BIT) & failed_max,
		.state = decode_state(mark),
		.is_last = mark >> LAST_BIT & 1,
	};
}

struct commit_record commit_record_of(struct draft *d)
{
	struct draft_stat stat;
	draft_get_stat(d, &stat);
	return commit_record_decode(stat.mark);
}

void commit_left_why(const struct draft_stat *stat, const char *note, struct str *out)
{
	const bool has_ended = commit_record_decode(stat->mark).state == COMMIT_ENDED;
	if (has_ended && stat->is_marked)
		str_add(out, "it was committed; the next mount removes it from the journal");
	else if (note[0])
		str_addf(out, "it could not be committed: %s%s", note,
			 stat->is_sealed ? "" : "; it was written to later");
	else if (has_ended)
		str_add(out, "it was committed, but not what was written to it later");
	else
		str_add(out, "the program that wrote it had not closed it");
}

/* ---- the storage of a commit, and versions ---- */

/* A bijection of 64-bit numbers. (The finisher of splitmix64.) */
static uint64_t mix(uint64_t v)
{
	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

uint64_t commit_seed(const char *draft_id, uint32_t number)
{
	const uint64_t offset = 0xcbf29ce484222325u, prime = 0x100000001b3u; /* FNV-1a, 64 bit */
	uint64_t h = offset;
	for (const char *p = draft_id; *p; p++)
		h = (h ^ (unsigned char)*p) * prime;
	return mix(mix(h) + number);
}

struct storage commit_storage(const struct schema_ops *schema, const char *draft_id,
			      uint32_t number)
{
	return schema_storage_of_number(schema, commit_seed(draft_id, number));
}

int commit_version_of_domain(const char *etag, char out[COMMIT_VERSION])
{
	return snprintf(out, COMMIT_VERSION, "d:%s", etag) < COMMIT_VERSION ? 0 : -ENAMETOOLONG;
}

int commit_version_of(const struct names_node *node, char out[COMMIT_VERSION])
{
	const struct schema_document *d = node ? node->doc.document : NULL;
	int n = 0;
	out[0] = '\0';
	if (node && node->kind == NAMES_DOMAIN && node->doc.kind == NAMES_DOC_BROKEN)
		return node->doc.code ? node->doc.code : -EIO;
	if (node && node->kind == NAMES_DOMAIN)
		return commit_version_of_domain(d ? d->etag : "", out);
	if (node)
		n = snprintf(out, COMMIT_VERSION, "o:%s", node->meta.etag);
	return n < COMMIT_VERSION ? 0 : -ENAMETOOLONG;
}
