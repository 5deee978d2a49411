/* SPDX-License-Identifier: Apache-2.0 */
/* A sink of checks that keeps all findings and results as text. */
#ifndef TESTS_UNIT_CHECK_FINDINGS_H
#define TESTS_UNIT_CHECK_FINDINGS_H

#include "bucket.h"

#include <errno.h>

#include <hsmount/check.h>
#include <base/str.h>

struct findings {
	struct str text;	     /* "severity path object key: text\n", "= outcome path\n" */
	unsigned int calls, stop_at; /* stop_at: the call that is refused, 0 none */
	struct engine_check_result last;
};

static inline int findings_add(void *arg, const struct engine_check_finding *f)
{
	struct findings *s = arg;
	str_addf(&s->text, "%s %s %s %s: %s\n", engine_check_severity_name(f->severity), f->path,
		 f->object, f->key, f->text);
	return ++s->calls == s->stop_at ? -EPIPE : 0;
}

static inline int findings_end(void *arg, const struct engine_check_result *r)
{
	struct findings *s = arg;
	str_addf(&s->text, "= %s %s\n", engine_check_outcome_name(engine_check_outcome(r)),
		 r->path);
	s->last = *r;
	return ++s->calls == s->stop_at ? -EPIPE : 0;
}

static inline struct engine_check_sink findings_sink(struct findings *s)
{
	return (struct engine_check_sink){
		.finding = findings_add, .result = findings_end, .arg = s};
}

/* Checks a path and compares the text of all findings. */
static inline void assert_check(struct test_bucket *b, const char *path, bool all, const char *text)
{
	struct findings s = {0};
	const struct engine_check_sink sink = findings_sink(&s);
	struct err err = ERR_INIT;
	if (engine_check(b->engine, path, all, &sink, &err))
		fail_msg("%s", err.msg);
	assert_string_equal(str_text(&s.text), text);
	str_release(&s.text);
}

#define CHECK_PREFIX "db/00000001-00000000/"
#define CHECK_DATA   CHECK_PREFIX "d/1111-222222-000001/"

#endif
