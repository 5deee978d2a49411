/* SPDX-License-Identifier: Apache-2.0 */
/* See checks.h. No state. */
#include "checks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hsmount/check.h>

#include "history.h"

/* The bit of a path; 0: it is none of the names. */
static unsigned int bit_of(const char *path)
{
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		if (path[0] == '/' && strcmp(path + 1, history_names[i]) == 0)
			return 1u << i;
	return 0;
}

static int take_finding(void *arg, const struct engine_check_finding *f)
{
	struct check_findings *c = arg;
	const unsigned int bit = bit_of(f->path);
	const bool is_error = f->severity == ENGINE_CHECK_ERROR;
	char *text = bit ? c->text : is_error ? c->other : c->other_unchecked;
	if (f->severity != ENGINE_CHECK_ERROR && f->severity != ENGINE_CHECK_UNCHECKED)
		return 0;
	if (is_error)
		c->errors |= bit;
	else
		c->unchecked |= bit;
	/* Files of hold.h are no valid files, and links_check() judges its domain. */
	if (!text[0] && !strstr(f->path, "held") && !strstr(f->path, "links"))
		snprintf(text, CHECK_TEXT, "%s: %s: %s %s: %s", f->path,
			 engine_check_severity_name(f->severity), f->object, f->key, f->text);
	return 0;
}

static int take_result(void *arg, const struct engine_check_result *r)
{
	struct check_findings *c = arg;
	if (engine_check_outcome(r) == ENGINE_CHECK_NOT_FINISHED)
		c->unknown |= bit_of(r->path);
	else
		c->domains |= bit_of(r->path);
	return 0;
}

int check_bucket(struct box *b, struct check_findings *out, struct err *err)
{
	const struct engine_check_sink sink = {
		.finding = take_finding, .result = take_result, .arg = out};
	*out = (struct check_findings){.domains = 0};
	const int rc = engine_check(b->engine, "", true, &sink, err);
	return b->line.dead ? -EIO : rc;
}
