/* SPDX-License-Identifier: Apache-2.0 */
/* Findings and results of a check. See check.h. */
#include "check.h"

#include <stdarg.h>

#include <engine/referred_files.h>
#include <engine/parts.h>

enum { FINDINGS_MAX = 10000 /* the most that are reported for one domain or file */ };

const char *engine_check_severity_name(enum engine_check_severity severity)
{
	static const char *const names[ENGINE_CHECK_SEVERITIES] = {"error", "unchecked",
								   "unfinished", "warning", "note"};
	return names[severity];
}

const char *engine_check_outcome_name(enum engine_check_outcome outcome)
{
	static const char *const names[ENGINE_CHECK_OUTCOMES] = {"sound", "damaged", "unchecked",
								 "unfinished"};
	return names[outcome];
}

enum engine_check_outcome engine_check_outcome(const struct engine_check_result *r)
{
	return r->findings[ENGINE_CHECK_ERROR]	      ? ENGINE_CHECK_DAMAGED
	       : r->findings[ENGINE_CHECK_UNCHECKED]  ? ENGINE_CHECK_NOT_CHECKED
	       : r->findings[ENGINE_CHECK_UNFINISHED] ? ENGINE_CHECK_NOT_FINISHED
						      : ENGINE_CHECK_SOUND;
}

void check_begin(struct check *c, const char *path)
{
	c->result = (struct engine_check_result){.path = path};
	c->handled = c->expected = 0;
}

int check_end(struct check *c)
{
	/* Fewer chunks may be stored than expected. */
	c->expected = c->handled;
	if (c->handled)
		check_handled(c, 0);
	return c->sink->result(c->sink->arg, &c->result);
}

static uint64_t reported(const struct engine_check_result *r)
{
	uint64_t n = 0;
	for (int i = 0; i < ENGINE_CHECK_SEVERITIES; i++)
		n += r->findings[i];
	return n - r->omitted;
}

int check_find(struct check *c, enum engine_check_severity severity, const char *object,
	       const char *key, const char *fmt, ...)
{
	auto_str struct str text = {0};
	va_list ap;
	va_start(ap, fmt);
	str_addv(&text, fmt, ap);
	va_end(ap);
	if (!str_ok(&text))
		return err_no_memory(c->err);
	const bool omitted = reported(&c->result) == FINDINGS_MAX;
	c->result.findings[severity]++;
	c->result.omitted += omitted;
	const struct engine_check_finding finding = {
		.severity = severity,
		.path = c->result.path,
		.object = object ? object : "",
		.key = key ? key : "",
		.text = str_text(&text),
	};
	return omitted ? 0 : c->sink->finding(c->sink->arg, &finding);
}

int check_find_alone(struct check *c, const char *path, enum engine_check_severity severity,
		     const char *key, const char *fmt, ...)
{
	auto_str struct str shown = {0}, text = {0};
	va_list ap;
	str_addf(&shown, "/%s", path);
	va_start(ap, fmt);
	str_addv(&text, fmt, ap);
	va_end(ap);
	if (!str_ok(&shown) || !str_ok(&text))
		return err_no_memory(c->err);
	check_begin(c, str_text(&shown));
	int rc = check_find(c, severity, NULL, key, "%s", str_text(&text));
	return rc ? rc : check_end(c);
}

int check_find_at(struct domain_check *dc, enum engine_check_severity severity, uint32_t number,
		  const char *key, const char *fmt, ...)
{
	auto_str struct str path = {0}, text = {0};
	va_list ap;
	describe_path(&path, dc->paths, number);
	va_start(ap, fmt);
	str_addv(&text, fmt, ap);
	va_end(ap);
	if (!str_ok(&path) || !str_ok(&text))
		return err_no_memory(dc->c->err);
	return check_find(dc->c, severity, str_text(&path), key, "%s", str_text(&text));
}

void check_decoded(struct check *c, uint64_t bytes)
{
	struct engine_check_result *r = &c->result;
	r->decoded++;
	r->decoded_bytes += bytes;
}

void check_handled(struct check *c, uint64_t bytes)
{
	c->handled += bytes;
	if (c->sink->progress)
		c->sink->progress(c->sink->arg, c->handled, max_u64(c->expected, c->handled));
}

uint64_t check_failed_requests(const struct engine *e)
{
	return store_stack_failures(&e->bucket.stack) + files_failures(e->files);
}
