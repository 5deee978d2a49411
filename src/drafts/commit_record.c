/* SPDX-License-Identifier: Apache-2.0 */
/* What the journal notes about the commits of a draft, and versions: see draft_commit.h. Pure. */
#include <drafts/draft_commit.h>

#include <errno.h>
#include <stdio.h>

#include <names/names.h>

enum {
	/* Bits of a mark. */
	RUNNING_BIT = DRAFT_MARK_RUNNING,
	LAST_BIT = 1,
	FAILED_BIT = 2, /* … to 30 */
	REFUSED_BIT = 31,
	NUMBER_BIT = 32,
};
static const uint32_t failed_max = (UINT32_C(1) << (REFUSED_BIT - FAILED_BIT)) - 1;

/* ---- the mark in the journal ---- */

uint64_t commit_record_encode(const struct commit_record *m)
{
	const uint64_t failed = m->failed < failed_max ? m->failed : failed_max;
	return (uint64_t)m->number << NUMBER_BIT | (uint64_t)m->is_refused << REFUSED_BIT |
	       failed << FAILED_BIT | (uint64_t)m->is_last << LAST_BIT |
	       (uint64_t)m->is_running << RUNNING_BIT;
}

struct commit_record commit_record_decode(uint64_t mark)
{
	return (struct commit_record){
		.number = (uint32_t)(mark >> NUMBER_BIT),
		.failed = (uint32_t)(mark >> FAILED_BIT) & failed_max,
		.is_running = mark >> RUNNING_BIT & 1,
		.is_refused = mark >> REFUSED_BIT & 1,
		.is_last = mark >> LAST_BIT & 1,
	};
}

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

int commit_version_of(const struct names_node *node, char out[COMMIT_VERSION])
{
	const struct schema_document *d = node ? node->doc.document : NULL;
	int n = 0;
	out[0] = '\0';
	if (node && node->kind == NAMES_DOMAIN && node->doc.kind == NAMES_DOC_BROKEN)
		return node->doc.code ? node->doc.code : -EIO;
	if (node && node->kind == NAMES_DOMAIN)
		n = snprintf(out, COMMIT_VERSION, "d:%s", d ? d->etag : "");
	else if (node)
		n = snprintf(out, COMMIT_VERSION, "o:%s", node->meta.etag);
	return n < COMMIT_VERSION ? 0 : -ENAMETOOLONG;
}
