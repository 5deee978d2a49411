/* SPDX-License-Identifier: Apache-2.0 */
/* The shared config and credentials files. Each renewal rereads them, because a new login changes
 * them. No state. */
#include "provider.h"

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int read_all(int fd, size_t max, struct str *out)
{
	char part[4096];
	for (;;) {
		ssize_t n = read(fd, part, sizeof(part));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		if ((size_t)n > max - out->b.len)
			return -EFBIG;
		str_addn(out, part, (size_t)n);
		if (!str_ok(out))
			return -ENOMEM;
	}
	explicit_bzero(part, sizeof(part));
	return 0;
}

static int open_file(const struct aws_environment *w, const char *path)
{
	auto_str struct str whole = {0};
	if (path[0] != '/' && w->directory)
		str_addf(&whole, "%s/", w->directory);
	str_add(&whole, path);
	if (!str_ok(&whole))
		return -ENOMEM;
	const int fd = open(str_text(&whole), O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cred_read_file(const struct aws_environment *w, const char *path, size_t max, struct str *out,
		   struct err *err)
{
	auto_close int fd = open_file(w, path);
	if (fd < 0)
		return err_errno(err, fd, "%s", path);
	int rc = read_all(fd, max, out);
	return rc ? err_errno(err, rc, "%s", path) : 0;
}

/* systemd starts services without HOME. Fails with -ENOENT if there is no home directory. */
static int home_of(const struct aws_environment *w, struct str *out)
{
	const char *home = cred_env(w, "HOME");
	if (!home)
		return w->home ? w->home(w, out) : -ENOENT;
	str_add(out, home);
	return 0;
}

static int path_of(const struct aws_environment *w, const char *variable, const char *name,
		   struct str *out)
{
	const char *given = cred_env(w, variable);
	if (given)
		str_add(out, given);
	else if (home_of(w, out) == 0)
		str_addf(out, "/.aws/%s", name);
	return str_ok(out) ? 0 : -ENOMEM;
}

static void warn_if_readable(const struct aws_environment *w, const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0 && (st.st_mode & (S_IRGRP | S_IROTH)))
		log_warning(w->env->log, "%s: other users can read it (mode %03o); use mode 600",
			    path, (unsigned int)st.st_mode & 0777);
}

/* The config file may be readable for everyone, unless it contains keys. */
static bool holds_keys(const struct ini *ini)
{
	for (const struct ini_entry *e = ini->entries; e; e = e->next)
		if (strcmp(e->key, "aws_secret_access_key") == 0)
			return true;
	return false;
}

static int load(const struct aws_environment *w, const char *variable, const char *name,
		bool is_secret, struct ini *out, struct err *err)
{
	auto_str struct str path = {0};
	auto_secret struct str text = {0};
	if (path_of(w, variable, name, &path))
		return err_no_memory(err);
	if (!path.b.len)
		return 0;
	struct err why = ERR_INIT;
	int rc = cred_read_file(w, str_text(&path), INI_SIZE_MAX, &text, &why);
	if (rc == -ENOENT || rc == -ENOTDIR)
		return 0;
	if (rc) {
		err_copy(err, &why);
		return rc;
	}
	rc = ini_parse(str_text(&text), text.b.len, out, err);
	if (rc)
		return err_wrap(err, rc, "%s", str_text(&path));
	if (w->warn && (is_secret || holds_keys(out)))
		warn_if_readable(w, str_text(&path));
	return 0;
}

int profile_files_load(const struct aws_environment *w, struct profile_files *out, struct err *err)
{
	*out = (struct profile_files){.profile = w->profile};
	if (!out->profile)
		out->profile = cred_env(w, "AWS_PROFILE");
	if (!out->profile)
		out->profile = cred_env(w, "AWS_DEFAULT_PROFILE");
	if (!out->profile)
		out->profile = "default";
	int rc = load(w, "AWS_CONFIG_FILE", "config", false, &out->config, err);
	if (rc == 0)
		rc = load(w, "AWS_SHARED_CREDENTIALS_FILE", "credentials", true, &out->credentials,
			  err);
	if (rc)
		profile_files_release(out);
	return rc;
}

void profile_files_release(struct profile_files *files)
{
	ini_release(&files->config);
	ini_release(&files->credentials);
}

/* The config file has "[profile x]" where the credentials file has "[x]"; both have "[default]". */
static void config_section(const char *profile, struct str *out)
{
	str_addf(out, "%s%s", strcmp(profile, "default") == 0 ? "" : "profile ", profile);
}

const char *profile_get(const struct profile_files *files, const char *profile, const char *key)
{
	auto_str struct str section = {0};
	const char *value = ini_get(&files->credentials, profile, key);
	config_section(profile, &section);
	if (!value)
		value = ini_get(&files->config, str_text(&section), key);
	return value && *value ? value : NULL;
}

const char *profile_endpoint(const struct profile_files *files, const char *profile,
			     const char *service)
{
	auto_str struct str section = {0}, key = {0};
	const char *services = profile_get(files, profile, "services");
	if (!services)
		return NULL;
	str_addf(&section, "services %s", services);
	str_addf(&key, "%s.endpoint_url", service);
	const char *value = ini_get(&files->config, str_text(&section), str_text(&key));
	return value && *value ? value : NULL;
}

bool profile_exists(const struct profile_files *files, const char *profile)
{
	auto_str struct str section = {0};
	config_section(profile, &section);
	for (const struct ini_entry *e = files->credentials.entries; e; e = e->next)
		if (strcmp(e->section, profile) == 0)
			return true;
	for (const struct ini_entry *e = files->config.entries; e; e = e->next)
		if (strcmp(e->section, str_text(&section)) == 0)
			return true;
	return false;
}
