/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials from environment variables, and the JSON form that other providers share. */
#include "provider.h"

#include <aws/time.h>

#include <errno.h>
#include <jansson.h>

int cred_from_env(const struct aws_environment *w, struct cred *out, struct err *err)
{
	const char *access = cred_env(w, "AWS_ACCESS_KEY_ID");
	const char *secret = cred_env(w, "AWS_SECRET_ACCESS_KEY");
	const char *token = cred_env(w, "AWS_SESSION_TOKEN");
	if (!access && !secret)
		return -ENOENT;
	if (!access || !secret)
		return err_set(err, -EINVAL, "the environment has %s but not %s",
			       access ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
			       access ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
	str_add(&out->access_key, access);
	str_add(&out->secret_key, secret);
	str_add(&out->token, token ? token : "");
	return 0;
}

/* Larger answers are refused. The nesting depth is bounded by Jansson. */
enum { JSON_MAX = 256 << 10 };

/* Appends a string member of an object to out. Returns false if the object has no string of that
 * name. */
static bool take_string(const json_t *object, const char *name, struct str *out)
{
	const char *text = json_string_value(json_object_get(object, name));
	if (text)
		str_add(out, text);
	return text != NULL;
}

/* Permanent keys have neither a token nor an expiry time. */
static int take_credentials(const json_t *object, const char *token, struct cred *out)
{
	auto_str struct str expiration = {0};
	take_string(object, "AccessKeyId", &out->access_key);
	take_string(object, "SecretAccessKey", &out->secret_key);
	take_string(object, token, &out->token);
	const bool expires = take_string(object, "Expiration", &expiration);
	if (!str_ok(&out->access_key) || !str_ok(&out->secret_key) || !str_ok(&out->token) ||
	    !str_ok(&expiration))
		return -ENOMEM;
	out->expires = expires ? s3_time_iso(str_text(&expiration)) : 0;
	if (expires && out->expires == 0)
		return -EINVAL;
	return str_text(&out->access_key)[0] && str_text(&out->secret_key)[0] ? 0 : -EINVAL;
}

int cred_from_json(const struct str *json, const char *token, const char *what, struct cred *out,
		   struct err *err)
{
	/* Jansson also refuses a NUL in a string, because no flag allows it. */
	json_t *object = json->b.len <= JSON_MAX ? json_loadb(str_text(json), json->b.len,
							      JSON_REJECT_DUPLICATES, NULL)
						 : NULL;
	const int rc = object ? take_credentials(object, token, out) : -EINVAL;
	json_decref(object);
	if (rc == 0)
		return 0;
	cred_release(out);
	if (rc == -ENOMEM)
		return err_set(err, rc, "%s: out of memory", what);
	return err_set(err, rc, "%s: the answer contains no credentials", what);
}
