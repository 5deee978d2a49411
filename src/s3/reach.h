/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a service can be reached: the state of outage.h with its lock, its two lines in the log,
 * and the thread that sends the own probes. All stores of a process whose buckets are at the same
 * service, and that have the same credentials, have the same one.
 *
 * Threads: the lock guards `outage` and the state of the thread. The first request without an
 * answer starts the thread, which sleeps while the service answers. An answer needs no lock while
 * `is_silent` is false. Both sides first write and then read, one of them `heard_ns` and then
 * `is_silent`, the other one in the other order. So at least one of them sees the other's.
 */
#ifndef S3_REACH_H
#define S3_REACH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>

#include "outage.h"

struct s3_request;
struct s3_store;

/* Sends an own probe and waits for its end, or until the thread has to stop. */
typedef enum s3_hearing s3_own_probe_fn(struct s3_store *prober, uint64_t *sent_ns, char *why);

struct s3_reach {
	struct s3_store *prober; /* its owner, whose bucket the own probes ask for */
	s3_own_probe_fn *send_own;
	unsigned int first_byte_ms;    /* of requests without an own limit; constant */
	atomic_uint_fast64_t heard_ns; /* when the latest answer began */
	atomic_bool is_silent;	       /* outage.state is not S3_ANSWERS */
	atomic_bool is_unreachable;    /* outage.state is S3_UNREACHABLE */
	atomic_bool stopping;	       /* the thread */
	pthread_mutex_t lock;	       /* guards what follows */
	pthread_cond_t changed;
	struct s3_outage outage;
	int64_t since; /* outage.since_ns in nanoseconds since the epoch */
	bool running;
	pthread_t thread; /* valid while running */
};

/* The service is unreachable if no request has been answered for retry_ms. */
void s3_reach_init(struct s3_reach *r, struct s3_store *prober, s3_own_probe_fn *send_own,
		   unsigned int retry_ms, unsigned int first_byte_ms);
void s3_reach_release(struct s3_reach *r);
/* Ends the thread, which the next request without an answer starts again. No request of a program
 * is in progress. */
void s3_reach_stop_thread(struct s3_reach *r);
/* See store_check(). */
int s3_reach_check(struct s3_store *s, struct err *err);

/* The calls of a request, in this order: admit() before it is sent, answered() when its answer
 * begins, ended() when it has ended, leave() before it is freed. admit() fails with -EIO if the
 * service is unreachable and the request is not a probe. Otherwise it may set the limit for the
 * answer. */
int s3_reach_admit(struct s3_request *call, bool may_probe, struct err *err);
void s3_reach_answered(struct s3_store *s);
void s3_reach_ended(struct s3_request *call);
void s3_reach_leave(struct s3_request *call);
/* For http.cancelled: the request is cancelled, or it is not worth waiting for. Those that wait for
 * a connection or for their answer when the service becomes unreachable end then, so that a program
 * does not wait for each of them. A put whose body is on its way goes on. */
bool s3_reach_ends(const void *call);
enum s3_hearing s3_reach_hearing(const struct s3_request *call);
/* Returns true if the request has no answer, and the service is unreachable. Then err says so. */
bool s3_reach_explains(const struct s3_request *call, struct err *err);

#endif
