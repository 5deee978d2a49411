/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the requests of a store show about its service: whether it answers at all. Pure: the caller
 * has a lock and a clock. Times are nanoseconds of env_now().
 *
 *   state        meaning                                     next
 *   ANSWERS      the latest request was answered             SILENT: a request gets no answer
 *   SILENT       no answer since `since_ns`                  ANSWERS; or, if no answer comes for
 *                                                            limit_ns, UNREACHABLE
 *   UNREACHABLE  the same; requests fail at once, and one    ANSWERS: a request is answered
 *                at a time, the probe, is sent
 *
 * Every HTTP status is an answer, also 503. A body that stalls after it is none of this module's
 * business. A request that gets no answer shows nothing if another one was answered after it had
 * been sent.
 */
#ifndef S3_OUTAGE_H
#define S3_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	S3_PROBE_MS = 2000,	   /* limit for the answer to a probe */
	S3_PROBE_PAUSE_MS = 1000,  /* after a probe, until the next request may be one */
	S3_PROBE_EVERY_MS = 10000, /* after a probe, until the store sends one itself */
};

enum s3_outage_state { S3_ANSWERS, S3_SILENT, S3_UNREACHABLE };

struct s3_outage {
	uint64_t limit_ns; /* without an answer, after which the service is unreachable */
	enum s3_outage_state state;
	uint64_t since_ns;  /* when the first request without an answer was sent */
	bool probing;	    /* a probe is on its way */
	uint64_t probed_ns; /* when the last probe ended, or the service became unreachable, or 0 */
};

enum s3_admission { S3_ADMIT, S3_ADMIT_AS_PROBE, S3_ADMIT_NOT };

/* Decides about a request that is about to be sent. If it is admitted as the probe,
 * s3_outage_probed() follows. may_probe is false for a request that takes too long for a probe. */
enum s3_admission s3_outage_admit(struct s3_outage *o, bool may_probe, uint64_t now_ns);
/* Returns how long the request may wait for its answer: `ms`, or less near the end of limit_ns. So
 * a request that was sent in the state SILENT ends when the service becomes unreachable. */
unsigned int s3_outage_cut(const struct s3_outage *o, unsigned int ms, uint64_t now_ns);
/* A request that was sent at sent_ns has got no answer. heard_ns is the time of the last answer to
 * any request. Returns true if the service has become unreachable now. */
bool s3_outage_silent(struct s3_outage *o, uint64_t sent_ns, uint64_t heard_ns, uint64_t now_ns);
/* A request was answered. Returns true if the service was unreachable. */
bool s3_outage_answered(struct s3_outage *o);
/* The probe has ended, with any result. */
void s3_outage_probed(struct s3_outage *o, uint64_t now_ns);
/* Returns the time at which the store has to send a probe itself, or UINT64_MAX. */
uint64_t s3_outage_due(const struct s3_outage *o);

#endif
