/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The providers of the chain, one per file. Each fills *out and returns 0. A provider that is not
 * configured returns -ENOENT, with or without a message in err. Any other error ends the chain.
 */
#ifndef AWS_PROVIDER_H
#define AWS_PROVIDER_H

#include <aws/credentials.h>
#include <aws/profile.h>

int cred_from_env(const struct aws_environment *w, struct cred *out, struct err *err);
int cred_from_web_env(const struct aws_environment *w, struct cred *out, struct err *err);
int cred_from_profile(const struct aws_environment *w, struct cred *out, struct err *err);
int cred_from_container(const struct aws_environment *w, struct cred *out, struct err *err);
int cred_from_imds(const struct aws_environment *w, struct cred *out, struct err *err);

/* ---- shared ---- */

/* Reads a file of at most max bytes. Fails with -EFBIG if the file is longer, with -ENOMEM, and
 * with the errors of open(2) and read(2). */
int cred_read_file(const struct aws_environment *w, const char *path, size_t max, struct str *out,
		   struct err *err);

/* Reads {"AccessKeyId": …, "SecretAccessKey": …, TOKEN: …, "Expiration": …}. token is the name of
 * the token's member, what the beginning of the error message. Fails with -EINVAL or -ENOMEM. */
int cred_from_json(const struct str *json, const char *token, const char *what, struct cred *out,
		   struct err *err);

/* Runs the command of credential_process and reads its output. */
int cred_run_process(const struct aws_environment *w, const char *command, struct cred *out,
		     struct err *err);

/* Roles of STS. base signs AssumeRole; a web identity needs no signature. */
struct sts_role {
	const char *arn, *session, *external_id; /* the last two may be NULL */
	const char *region;			 /* may be NULL */
	const char *duration;			 /* seconds, or NULL */
	const char *endpoint;			 /* may be NULL */
};
int sts_assume_role(const struct aws_environment *w, const struct sts_role *role,
		    const struct cred *base, struct cred *out, struct err *err);
int sts_web_identity(const struct aws_environment *w, const struct sts_role *role,
		     const char *token_file, struct cred *out, struct err *err);

#endif
