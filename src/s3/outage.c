/* SPDX-License-Identifier: Apache-2.0 */
/* See outage.h. */
#include "outage.h"

#include <base/mem.h>

static const uint64_t ms_ns = 1000000;

enum s3_admission s3_outage_admit(struct s3_outage *o, bool may_probe, uint64_t now_ns)
{
	if (o->state != S3_UNREACHABLE)
		return S3_ADMIT;
	if (!may_probe || o->probing || now_ns < o->probed_ns + S3_PROBE_PAUSE_MS * ms_ns)
		return S3_ADMIT_NOT;
	o->probing = true;
	return S3_ADMIT_AS_PROBE;
}

unsigned int s3_outage_cut(const struct s3_outage *o, unsigned int ms, uint64_t now_ns)
{
	const uint64_t end_ns = o->since_ns + o->limit_ns;
	if (o->state == S3_ANSWERS)
		return ms;
	const uint64_t left_ms = end_ns > now_ns ? div_up_u64(end_ns - now_ns, ms_ns) : 0;
	return (unsigned int)min_u64(ms, max_u64(left_ms, S3_PROBE_MS));
}

bool s3_outage_silent(struct s3_outage *o, uint64_t sent_ns, uint64_t heard_ns, uint64_t now_ns)
{
	if (heard_ns >= sent_ns)
		return false;
	if (o->state == S3_ANSWERS) {
		o->state = S3_SILENT;
		o->since_ns = sent_ns;
		o->probed_ns = 0;
	}
	if (o->state != S3_SILENT || now_ns - o->since_ns < o->limit_ns)
		return false;
	o->state = S3_UNREACHABLE;
	o->probed_ns = now_ns; /* this request was as good as a probe */
	return true;
}

bool s3_outage_answered(struct s3_outage *o)
{
	const bool was_unreachable = o->state == S3_UNREACHABLE;
	o->state = S3_ANSWERS;
	return was_unreachable;
}

void s3_outage_probed(struct s3_outage *o, uint64_t now_ns)
{
	o->probing = false;
	o->probed_ns = now_ns;
}

uint64_t s3_outage_due(const struct s3_outage *o)
{
	const uint64_t again_ns = o->probed_ns ? o->probed_ns + S3_PROBE_EVERY_MS * ms_ns : 0;
	if (o->state == S3_ANSWERS)
		return UINT64_MAX;
	return max_u64(o->since_ns + o->limit_ns, again_ns);
}
