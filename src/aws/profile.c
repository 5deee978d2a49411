/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credentials of a profile, in the order of AWS's tools: a role that is assumed with the
 * credentials of another profile or source, a web identity, keys, or a process. Roles may be
 * chained. The depth is limited, so a circle is an error.
 */
#include "provider.h"

#include <errno.h>
#include <string.h>

enum { CHAIN_MAX = 5 };

static int resolve(const struct aws_environment *w, const struct profile_files *files,
		   const char *profile, unsigned int depth, struct cred *out, struct err *err);

static int from_keys(const struct profile_files *files, const char *profile, struct cred *out,
		     struct err *err)
{
	const char *access = profile_get(files, profile, "aws_access_key_id");
	const char *secret = profile_get(files, profile, "aws_secret_access_key");
	const char *token = profile_get(files, profile, "aws_session_token");
	if (!access && !secret)
		return -ENOENT;
	if (!access || !secret)
		return err_set(err, -EINVAL, "profile '%s' has %s but not %s", profile,
			       access ? "aws_access_key_id" : "aws_secret_access_key",
			       access ? "aws_secret_access_key" : "aws_access_key_id");
	str_add(&out->access_key, access);
	str_add(&out->secret_key, secret);
	str_add(&out->token, token ? token : "");
	return 0;
}

static int from_named_source(const struct aws_environment *w, const char *source, struct cred *out,
			     struct err *err)
{
	static const struct {
		const char *name;
		int (*get)(const struct aws_environment *w, struct cred *out, struct err *err);
	} sources[] = {
		{"Environment", cred_from_env},
		{"EcsContainer", cred_from_container},
		{"Ec2InstanceMetadata", cred_from_imds},
	};
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
		if (strcmp(source, sources[i].name) == 0)
			return sources[i].get(w, out, err);
	return err_set(err, -EINVAL,
		       "unknown credential_source '%s'; known are Environment, EcsContainer and "
		       "Ec2InstanceMetadata",
		       source);
}

static int from_role(const struct aws_environment *w, const struct profile_files *files,
		     const char *profile, unsigned int depth, struct cred *out, struct err *err)
{
	auto_cred struct cred base = {0};
	const char *token_file = profile_get(files, profile, "web_identity_token_file");
	const char *source = profile_get(files, profile, "source_profile");
	const char *named = profile_get(files, profile, "credential_source");
	const struct sts_role role = {
		.arn = profile_get(files, profile, "role_arn"),
		.session = profile_get(files, profile, "role_session_name"),
		.external_id = profile_get(files, profile, "external_id"),
		.region = profile_get(files, profile, "region"),
		.duration = profile_get(files, profile, "duration_seconds"),
		.endpoint = profile_endpoint(files, profile, "sts"),
	};
	int rc;
	if (!role.arn)
		return -ENOENT;
	if (token_file)
		return sts_web_identity(w, &role, token_file, out, err);
	if (source && strcmp(source, profile) == 0)
		rc = from_keys(files, source, &base, err);
	else if (source)
		rc = resolve(w, files, source, depth + 1, &base, err);
	else if (named)
		rc = from_named_source(w, named, &base, err);
	else
		return err_set(err, -EINVAL,
			       "profile '%s' has role_arn but neither source_profile nor "
			       "credential_source",
			       profile);
	if (rc == -ENOENT)
		return err_set(err, -EINVAL, "profile '%s': its source '%s' has no credentials",
			       profile, source ? source : named);
	return rc ? rc : sts_assume_role(w, &role, &base, out, err);
}

/* Only the AWS CLI can read the credentials of "aws sso login" and "aws login". */
static int from_login(const struct profile_files *files, const char *profile, struct err *err)
{
	static const char *const keys[] = {"sso_session", "sso_start_url", "login_session"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (profile_get(files, profile, keys[i]))
			return err_set(
				err, -EINVAL,
				"profile '%s' has %s, whose credentials only the AWS CLI can read; "
				"use a profile with \"credential_process = aws configure "
				"export-credentials --profile %s\"",
				profile, keys[i], profile);
	return -ENOENT;
}

static int resolve(const struct aws_environment *w, const struct profile_files *files,
		   const char *profile, unsigned int depth, struct cred *out, struct err *err)
{
	const char *process = profile_get(files, profile, "credential_process");
	if (depth > CHAIN_MAX)
		return err_set(err, -ELOOP, "profile '%s': source_profile forms a circle", profile);
	int rc = from_role(w, files, profile, depth, out, err);
	if (rc == -ENOENT)
		rc = from_keys(files, profile, out, err);
	if (rc == -ENOENT && process)
		rc = cred_run_process(w, process, out, err);
	if (rc == -ENOENT)
		rc = from_login(files, profile, err);
	return rc;
}

int cred_from_profile(const struct aws_environment *w, struct cred *out, struct err *err)
{
	auto_profiles struct profile_files files = {0};
	int rc = profile_files_load(w, &files, err);
	if (rc)
		return rc == -ENOENT ? -EINVAL : rc;
	if ((w->profile || cred_env(w, "AWS_PROFILE")) && !profile_exists(&files, files.profile))
		return err_set(err, -EINVAL, "there is no profile '%s'", files.profile);
	return resolve(w, &files, files.profile, 0, out, err);
}
