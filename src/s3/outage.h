/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the requests to a service show about it: whether it answers at all. Pure: the caller has a
 * lock and a clock. Times are nanoseconds of env_now(), which stands still while the machine
 * sleeps: a laptop that wakes up has not waited for the service meanwhile.
 *
 *   state        event                                              next
 *   ANSWERS      a request ends without an answer                   SILENT since it was sent
 *   SILENT       a request is answered                              ANSWERS
 *                the daemon's own probe ends without an answer,     UNREACHABLE
 *                `limit_ns` after the beginning or later
 *   UNREACHABLE  a request is answered                              ANSWERS
 *
 * Every HTTP status is an answer, also 503, and also one whose body stalls. No answer are: a
 * time-out before the status; a connection that fails or breaks; a host name without an address;
 * and a certificate that is not valid, because its sender may be another machine. A request that is
 * cancelled, or that this machine could not send, shows nothing. Nor does one without an answer, if
 * another one was answered after it had been sent: perhaps only one prefix hangs.
 *
 * There are two kinds of probes, one of each at a time:
 *
 *   own    a HEAD of the bucket that the daemon sends: near the end of limit_ns in the state
 *          SILENT, and in the state UNREACHABLE S3_OWN_EVERY_MS after the one before. It may take
 *          as long as any request, because a service that is slow answers, too. Nothing that
 *          programs do delays it
 *   guest  a request of a program in the state UNREACHABLE, which may take S3_GUEST_MS. All other
 *          requests fail at once in this state. In the state SILENT, all requests are sent
 */
#ifndef S3_OUTAGE_H
#define S3_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	S3_GUEST_MS = 2000,	  /* limit for the answer to a program's request that is a probe */
	S3_GUEST_PAUSE_MS = 1000, /* after it, until the next one may be a probe */
	S3_OWN_EVERY_MS = 10000,  /* after an own probe, until the next one */
};

enum s3_outage_state { S3_ANSWERS, S3_SILENT, S3_UNREACHABLE };

struct s3_outage {
	uint64_t limit_ns;   /* constant: without an answer, until the service is unreachable */
	uint64_t timeout_ns; /* constant: limit for the answer to an own probe */
	enum s3_outage_state state;
	uint64_t since_ns;	 /* when the first request without an answer was sent */
	uint64_t own_ns;	 /* when the next own probe is due */
	uint64_t guest_ns;	 /* before this, no request of a program is a probe */
	bool has_own, has_guest; /* a probe of this kind is on its way */
};

/* How a request ended. */
enum s3_hearing { S3_SHOWS_NOTHING, S3_NO_ANSWER, S3_ANSWERED };

/* A request that was sent at sent_ns has got no answer. heard_ns is the time of the last answer to
 * any request. Returns true if the service is silent now, and was not before. */
bool s3_outage_silent(struct s3_outage *o, uint64_t sent_ns, uint64_t heard_ns, uint64_t now_ns);
/* A request was answered. Returns true if the service was unreachable. */
bool s3_outage_answered(struct s3_outage *o);

enum s3_admission { S3_ADMIT, S3_ADMIT_AS_GUEST, S3_ADMIT_NOT };
/* Decides about a request of a program that is about to be sent. If it is admitted as a probe,
 * s3_outage_guest_ended() follows, whatever its end. may_probe is false for a request that takes
 * too long, or changes something. */
enum s3_admission s3_outage_admit(struct s3_outage *o, bool may_probe, uint64_t now_ns);
void s3_outage_guest_ended(struct s3_outage *o, uint64_t now_ns);

/* Returns the time at which an own probe is due, or UINT64_MAX. */
uint64_t s3_outage_due(const struct s3_outage *o);
/* An own probe is being sent. s3_outage_own_ended() follows. */
void s3_outage_own_sent(struct s3_outage *o);
/* It has ended. S3_SHOWS_NOTHING: also if it could not be sent. Returns true if the service is
 * unreachable now, and was not before. */
bool s3_outage_own_ended(struct s3_outage *o, enum s3_hearing hearing, uint64_t sent_ns,
			 uint64_t heard_ns, uint64_t now_ns);

#endif
