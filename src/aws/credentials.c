/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain and the renewal of credentials.
 *
 *   the credentials            credentials_get()
 *   are valid for long         returns a copy
 *   expire within SOON_S       one caller renews them, which blocks it; the others get a copy.
 *                              After an attempt, successful or not, the next one is made RETRY_S
 *                              later, because the service may not have newer credentials yet
 *   have expired, or the       one caller renews them, the others block until it has finished. If
 *   server says so             it fails, these callers and all others of the same second fail
 *
 * If a server rejects credentials as expired that were renewed less than RETRY_S ago, they are not
 * renewed: one of the two clocks is wrong, and another renewal does not help.
 *
 * Threads: lock guards everything except environment and source, which are constant after the
 * constructor. The thread that set `renewing` calls the service without the lock.
 */
#include "provider.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

enum { SOON_S = 300, RETRY_S = 30 };

typedef int (*provider_fn)(const struct aws_environment *w, struct cred *out, struct err *err);

struct credentials {
	struct aws_environment environment;
	char *profile, *region, *ca_bundle, *directory;
	provider_fn source; /* the provider of the chain that has credentials */

	pthread_mutex_t lock;
	pthread_cond_t renewed;
	struct cred cred;
	bool renewing;
	bool expired;	    /* the server has rejected them as expired */
	bool suspect;	    /* they may have expired; renew them at the next use */
	int64_t suspect_at; /* when `suspect` was set last; 0 if never */
	int64_t not_before; /* no renewal before this time, while cred is still valid */
	int64_t renewed_at; /* 0 if never */
	int64_t failed_at;  /* likewise */
	struct err failure; /* the error of that attempt */
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
	const bool by_name = c->environment.profile != NULL;
	const provider_fn *providers = by_name ? named : chain;
	const size_t n = by_name ? 1 : sizeof(chain) / sizeof(chain[0]);
	for (size_t i = 0; i < n; i++) {
		int rc = providers[i](&c->environment, &c->cred, err);
		if (rc == 0)
			c->source = providers[i];
		if (rc != -ENOENT)
			return rc;
	}
	if (by_name)
		return err_set(err, -ENOENT, "profile '%s' has no credentials",
			       c->environment.profile);
	return err_set(err, -ENOENT,
		       "no AWS credentials in the environment, the shared files, a container "
		       "endpoint or instance metadata; for a public bucket use -o no_sign_request");
}

/* ---- renewal ---- */

static bool valid_locked(const struct credentials *c, int64_t now)
{
	return !c->expired && (c->cred.expires == 0 || now < c->cred.expires);
}

static bool due_locked(const struct credentials *c, int64_t now)
{
	if (c->suspect || !valid_locked(c, now))
		return true;
	return c->cred.expires && now >= c->cred.expires - SOON_S && now >= c->not_before;
}

/* Returns the error of a request for an object whose credentials could not be renewed. Other codes
 * would be statements about the object: that it does not exist (-ENOENT) or that its name is not
 * valid (-EINVAL). */
static int access_error(int code)
{
	return code == -EIO || code == -ENOMEM ? code : -EACCES;
}

/* Returns 0 with err set if the renewal failed and the current credentials are still valid. */
static int renew_locked(struct credentials *c, struct err *err)
{
	auto_cred struct cred fresh = {0};
	c->renewing = true;
	pthread_mutex_unlock(&c->lock);
	int rc = c->source(&c->environment, &fresh, err);
	const int64_t now = c->environment.wall(&c->environment);
	if (rc == 0 && fresh.expires && now >= fresh.expires)
		rc = err_set(err, -EACCES, "the service returned expired credentials");
	pthread_mutex_lock(&c->lock);
	c->renewing = c->suspect = false;
	pthread_cond_broadcast(&c->renewed);
	c->not_before = now + RETRY_S;
	if (rc == 0) {
		const struct cred old = c->cred;
		c->cred = fresh;
		fresh = old;
		c->expired = false;
		c->renewed_at = now;
		*err = (struct err)ERR_INIT; /* drops the error of a failed attempt before */
		return 0;
	}
	if (valid_locked(c, now) && c->cred.expires) {
		err_wrap(err, rc, "credentials expire in %" PRId64 " s and cannot be renewed",
			 c->cred.expires - now);
		return 0;
	}
	if (valid_locked(c, now)) {
		err_wrap(err, rc, "credentials cannot be reread");
		return 0;
	}
	if (!err->code)
		err_set(err, rc, "their source has no credentials any more");
	err_wrap(err, rc, "credentials cannot be renewed");
	rc = err->code = access_error(err->code);
	c->failed_at = now;
	err_copy(&c->failure, err);
	return rc;
}

int credentials_get(struct credentials *c, struct cred *out, struct err *err)
{
	struct err why = ERR_INIT;
	int rc = 0;
	pthread_mutex_lock(&c->lock);
	while (c->renewing &&
	       (c->suspect || !valid_locked(c, c->environment.wall(&c->environment))))
		pthread_cond_wait(&c->renewed, &c->lock);
	const int64_t now = c->environment.wall(&c->environment);
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
		log_warning(c->environment.env->log, "%s", why.msg);
	return rc;
}

/* Permanent keys do not change when they are read again, and the environment of a process does not
 * change either. Session keys expire, even if their shared file does not say when, and a new login
 * replaces them there. */
static bool may_change_locked(const struct credentials *c)
{
	const bool is_session = str_text(&c->cred.token)[0] && c->source != cred_from_env;
	return c->cred.expires != 0 || is_session;
}

bool credentials_expired(struct credentials *c, const char *access_key)
{
	pthread_mutex_lock(&c->lock);
	const bool current = strcmp(str_text(&c->cred.access_key), access_key) == 0;
	const bool renewable = may_change_locked(c) &&
			       (!current || c->renewed_at == 0 ||
				c->environment.wall(&c->environment) >= c->renewed_at + RETRY_S);
	if (current && renewable)
		c->expired = true;
	pthread_mutex_unlock(&c->lock);
	return renewable || !current;
}

bool credentials_denied(struct credentials *c, const char *access_key)
{
	pthread_mutex_lock(&c->lock);
	const bool current = strcmp(str_text(&c->cred.access_key), access_key) == 0;
	const bool end_unknown = c->cred.expires == 0 && may_change_locked(c);
	const int64_t now = c->environment.wall(&c->environment);
	if (current && end_unknown && (c->suspect_at == 0 || now >= c->suspect_at + RETRY_S)) {
		c->suspect = true;
		c->suspect_at = now;
	}
	const bool retry = end_unknown && (c->suspect || !current);
	pthread_mutex_unlock(&c->lock);
	return retry;
}

/* ---- construction ---- */

static int keep(char **copy_, const char **field)
{
	if (!*field)
		return 0;
	*copy_ = strdup(*field);
	*field = *copy_;
	return *copy_ ? 0 : -ENOMEM;
}

struct credentials *credentials_new(const struct aws_environment *environment, struct err *err)
{
	struct credentials *c = calloc(1, sizeof(*c));
	if (!c) {
		err_set(err, -ENOMEM, "credentials: out of memory");
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->renewed, NULL);
	c->environment = *environment;
	if (keep(&c->profile, &c->environment.profile) ||
	    keep(&c->region, &c->environment.region) ||
	    keep(&c->ca_bundle, &c->environment.ca_bundle) ||
	    keep(&c->directory, &c->environment.directory)) {
		err_set(err, -ENOMEM, "credentials: out of memory");
		goto fail;
	}
	c->environment.warn = true;
	if (find(c, err) == 0) {
		c->environment.warn = false; /* renewals do not repeat the warning */
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
