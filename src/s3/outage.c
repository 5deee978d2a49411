/* SPDX-License-Identifier: Apache-2.0 */
/* See outage.h. */
#include "outage.h"

#include <base/mem.h>

static const uint64_t ms_ns = 1000000;

bool s3_outage_silent(struct s3_outage *o, uint64_t sent_ns, uint64_t heard_ns, uint64_t now_ns)
{
	if (heard_ns >= sent_ns || o->state != S3_ANSWERS)
		return false;
	/* If the service hangs, the own probe ends when limit_ns is over. */
	const uint64_t end_ns = sent_ns + o->limit_ns;
	o->state = S3_SILENT;
	o->since_ns = sent_ns;
	o->own_ns = max_u64(now_ns, end_ns - min_u64(o->timeout_ns, o->limit_ns));
	return true;
}

bool s3_outage_answered(struct s3_outage *o)
{
	const bool was_unreachable = o->state == S3_UNREACHABLE;
	o->state = S3_ANSWERS;
	return was_unreachable;
}

enum s3_admission s3_outage_admit(struct s3_outage *o, bool may_probe, uint64_t now_ns)
{
	if (o->state != S3_UNREACHABLE)
		return S3_ADMIT;
	if (!may_probe || o->has_guest || now_ns < o->guest_ns)
		return S3_ADMIT_NOT;
	o->has_guest = true;
	return S3_ADMIT_AS_GUEST;
}

void s3_outage_guest_ended(struct s3_outage *o, uint64_t now_ns)
{
	o->has_guest = false;
	o->guest_ns = now_ns + S3_GUEST_PAUSE_MS * ms_ns;
}

uint64_t s3_outage_due(const struct s3_outage *o)
{
	return o->state == S3_ANSWERS || o->has_own ? UINT64_MAX : o->own_ns;
}

void s3_outage_own_sent(struct s3_outage *o)
{
	o->has_own = true;
}

bool s3_outage_own_ended(struct s3_outage *o, enum s3_hearing hearing, uint64_t sent_ns,
			 uint64_t heard_ns, uint64_t now_ns)
{
	const uint64_t end_ns = o->since_ns + o->limit_ns;
	const bool is_early = o->state == S3_SILENT && now_ns < end_ns;
	o->has_own = false;
	o->own_ns = now_ns + S3_OWN_EVERY_MS * ms_ns;
	if (is_early)
		o->own_ns = min_u64(o->own_ns, end_ns);
	/* The state may have begun anew since the probe was sent. */
	if (o->state != S3_SILENT || is_early || hearing != S3_NO_ANSWER || heard_ns >= sent_ns)
		return false;
	o->state = S3_UNREACHABLE;
	o->guest_ns = now_ns + S3_GUEST_PAUSE_MS * ms_ns;
	return true;
}
