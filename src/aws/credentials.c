/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain and the renewal of credentials.
 *
 *   age                       a caller of credentials_get()
 *   fresh                     takes a copy
 *   SOON before the end       one caller renews (it waits for the service), the others take a copy;
 *                             whatever came of it, nobody tries again for RETRY seconds: a service
 *                             may have nothing newer yet
 *   over, or said to be over  everybody waits for the one that renews; when it fails, they and all
 *                             who come within that second fail with it
 *
 * A server that says of credentials not RETRY seconds old that they are over says it in vain: one
 * of the two has a wrong clock, and asking for more would not help.
 *
 * Threads: lock guards everything but world and source, which are constant after the constructor;
 * the service is asked without it, by the thread that set `renewing`.
 */
#include "provider.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

enum { SOON_S = 300, RETRY_S = 30 };

typedef int (*provider_fn)(const struct aws_environment *w, struct cred *out, struct err *err);

struct credentials {
	struct aws_environment world;
	char *profile, *region, *ca_bundle, *directory;
	provider_fn source; /* the one that had some */

	pthread_mutex_t lock;
	pthread_cond_t renewed;
	struct cred cred;
	bool renewing, over; /* over: the server said so */
	bool doubted;	     /* it may be: looked at with the next renewal */
	int64_t doubted_at;  /* 0: never */
	int64_t not_before;  /* no renewal before this time, while cred is still valid */
	int64_t renewed_at;  /* 0: never */
	int64_t failed_at;   /* likewise */
	struct err failure;  /* of that time */
};

static int copy(struct cred *to, const struct cred *from)
{
	*to = (struct cred){.expires = from->expires};
	str_add(&to->access_key, str_text(&from->access_key));
	str_add(&to->secret_key, str_text(&from->secret_key));
	str_add(&to->token, str_text(&from->token));
	if (str_ok(&to->access_key) && str_ok(&to->secret_key) && str_ok(&to->token))
		return 0;
	cred_release(to);
	return -ENOMEM;
}

/* ---- the chain ---- */

static int find(struct credentials *c, struct err *err)
{
	static const provider_fn chain[] = {cred_from_env, cred_from_web_env, cred_from_profile,
					    cred_from_container, cred_from_imds};
	static const provider_fn named[] = {cred_from_profile};
	const bool by_name = c->world.profile != NULL;
	const provider_fn *providers = by_name ? named : chain;
	const size_t n = by_name ? 1 : sizeof(chain) / sizeof(chain[0]);
	for (size_t i = 0; i < n; i++) {
		int rc = providers[i](&c->world, &c->cred, err);
		if (rc == 0)
			c->source = providers[i];
		if (rc != -ENOENT)
			return rc;
	}
	if (by_name)
		return err_set(err, -ENOENT, "profile '%s' has no credentials", c->world.profile);
	return err_set(err, -ENOENT,
		       "no AWS credentials: not in the environment, the shared files, a container "
		       "endpoint or instance metadata (no_sign_request, if the bucket is public)");
}

/* ---- renewal ---- */

static bool valid_locked(const struct credentials *c, int64_t now)
{
	return !c->over && (c->cred.expires == 0 || now < c->cred.expires);
}

static bool due_locked(const struct credentials *c, int64_t now)
{
	if (c->doubted || !valid_locked(c, now))
		return true;
	return c->cred.expires && now >= c->cred.expires - SOON_S && now >= c->not_before;
}

/* A failure as callers that ask for an object see it. Other codes would say something of the
 * object: that it is not there (-ENOENT), or has a name that none can have (-EINVAL). */
static int as_refusal(int code)
{
	return code == -EIO || code == -ENOMEM ? code : -EACCES;
}

/* 0 with err set: it failed, but those at hand are good for a while. */
static int renew_locked(struct credentials *c, struct err *err)
{
	auto_cred struct cred fresh = {0};
	c->renewing = true;
	pthread_mutex_unlock(&c->lock);
	int rc = c->source(&c->world, &fresh, err);
	const int64_t now = c->world.wall(&c->world);
	if (rc == 0 && fresh.expires && now >= fresh.expires)
		rc = err_set(err, -EACCES, "the service gave credentials that have expired");
	pthread_mutex_lock(&c->lock);
	c->renewing = c->doubted = false;
	pthread_cond_broadcast(&c->renewed);
	c->not_before = now + RETRY_S;
	if (rc == 0) {
		const struct cred old = c->cred;
		c->cred = fresh;
		fresh = old;
		c->over = false;
		c->renewed_at = now;
		*err = (struct err)ERR_INIT; /* of an attempt before the one that succeeded */
		return 0;
	}
	if (valid_locked(c, now) && c->cred.expires) {
		err_wrap(err, rc, "credentials end in %" PRId64 " s and cannot be renewed",
			 c->cred.expires - now);
		return 0;
	}
	if (valid_locked(c, now)) {
		err_wrap(err, rc, "credentials cannot be read again");
		return 0;
	}
	if (!err->code)
		err_set(err, rc, "where they came from there are none any more");
	err_wrap(err, rc, "credentials cannot be renewed");
	rc = err->code = as_refusal(err->code);
	c->failed_at = now;
	err_copy(&c->failure, err);
	return rc;
}

int credentials_get(struct credentials *c, struct cred *out, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = 0;
	pthread_mutex_lock(&c->lock);
	while (c->renewing && (c->doubted || !valid_locked(c, c->world.wall(&c->world))))
		pthread_cond_wait(&c->renewed, &c->lock);
	const int64_t now = c->world.wall(&c->world);
	if (!valid_locked(c, now) && c->failed_at == now) {
		why = c->failure;
		rc = why.code;
	} else if (!c->renewing && due_locked(c, now)) {
		rc = renew_locked(c, &why);
	}
	if (rc)
		err_copy(err, &why);
	else if ((rc = copy(out, &c->cred)))
		err_set(err, rc, "credentials: out of memory");
	pthread_mutex_unlock(&c->lock);
	if (rc == 0 && why.code)
		log_warning(c->world.env->log, "%s", why.msg);
	return rc;
}

/* Keys that last are the same wherever they are read again, and so is the environment. Those of a
 * session end, also where a shared file does not say when; somebody may have logged in again. */
static bool may_change_locked(const struct credentials *c)
{
	const bool of_session = str_text(&c->cred.token)[0] && c->source != cred_from_env;
	return c->cred.expires != 0 || of_session;
}

bool credentials_expired(struct credentials *c, const char *access_key)
{
	pthread_mutex_lock(&c->lock);
	const bool ours = strcmp(str_text(&c->cred.access_key), access_key) == 0;
	const bool renewable =
		may_change_locked(c) && (!ours || c->renewed_at == 0 ||
					 c->world.wall(&c->world) >= c->renewed_at + RETRY_S);
	if (ours && renewable)
		c->over = true;
	pthread_mutex_unlock(&c->lock);
	return renewable || !ours;
}

bool credentials_doubted(struct credentials *c, const char *access_key)
{
	pthread_mutex_lock(&c->lock);
	const bool ours = strcmp(str_text(&c->cred.access_key), access_key) == 0;
	const bool unsure = c->cred.expires == 0 && may_change_locked(c);
	const int64_t now = c->world.wall(&c->world);
	if (ours && unsure && (c->doubted_at == 0 || now >= c->doubted_at + RETRY_S)) {
		c->doubted = true;
		c->doubted_at = now;
	}
	const bool again = unsure && (c->doubted || !ours);
	pthread_mutex_unlock(&c->lock);
	return again;
}

/* ---- life ---- */

static int keep(char **copy_, const char **field)
{
	if (!*field)
		return 0;
	*copy_ = strdup(*field);
	*field = *copy_;
	return *copy_ ? 0 : -ENOMEM;
}

struct credentials *credentials_new(const struct aws_environment *world, struct err *err)
{
	struct credentials *c = calloc(1, sizeof(*c));
	if (!c) {
		err_set(err, -ENOMEM, "credentials: out of memory");
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->renewed, NULL);
	c->world = *world;
	if (keep(&c->profile, &c->world.profile) || keep(&c->region, &c->world.region) ||
	    keep(&c->ca_bundle, &c->world.ca_bundle) || keep(&c->directory, &c->world.directory)) {
		err_set(err, -ENOMEM, "credentials: out of memory");
		goto fail;
	}
	c->world.warn = true;
	if (find(c, err) == 0) {
		c->world.warn = false; /* once is enough */
		return c;
	}
fail:
	credentials_free(c);
	return NULL;
}

void credentials_free(struct credentials *c)
{
	if (!c)
		return;
	cred_release(&c->cred);
	pthread_cond_destroy(&c->renewed);
	pthread_mutex_destroy(&c->lock);
	free(c->profile);
	free(c->region);
	free(c->ca_bundle);
	free(c->directory);
	free(c);
}
