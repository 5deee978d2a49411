/* SPDX-License-Identifier: Apache-2.0 */
/* See check_format.h, and doc/hsimage.1 for the JSON. */
#include "check_format.h"

#include <inttypes.h>

/* ---- text ---- */

static void add_part(struct str *out, const char *part)
{
	if (!part[0])
		return;
	str_add_printable(out, part);
	str_add(out, ": ");
}

static void add_count(struct str *out, const char *what, uint64_t n)
{
	if (n)
		str_addf(out, ", %s %" PRIu64, what, n);
}

/* "damaged: /home/u/a.h5: objects 5, chunks 10, decoded 9, errors 1, notes 2" */
static void text_result(const struct engine_check_result *r, struct str *out)
{
	str_addf(out, "%s: ", engine_check_outcome_name(engine_check_outcome(r)));
	str_add_printable(out, r->path);
	str_addf(out, ": objects %" PRIu64 ", chunks %" PRIu64 ", decoded %" PRIu64, r->objects,
		 r->chunks, r->decoded);
	add_count(out, "errors", r->findings[ENGINE_CHECK_ERROR]);
	add_count(out, "unchecked", r->findings[ENGINE_CHECK_UNCHECKED]);
	add_count(out, "unfinished", r->findings[ENGINE_CHECK_UNFINISHED]);
	add_count(out, "warnings", r->findings[ENGINE_CHECK_WARNING]);
	add_count(out, "notes", r->findings[ENGINE_CHECK_NOTE]);
	add_count(out, "not shown", r->omitted);
	str_add(out, "\n");
}

/* ---- JSON ---- */

static void json_text(struct str *out, const char *member, const char *text)
{
	str_addf(out, "\"%s\": ", member);
	str_add_json(out, text);
	str_add(out, ", ");
}

static void json_number(struct str *out, const char *member, uint64_t n)
{
	str_addf(out, "\"%s\": %" PRIu64 ", ", member, n);
}

static void json_result(const struct engine_check_result *r, const struct str *findings,
			struct str *out)
{
	str_add(out, "{");
	json_text(out, "path", r->path);
	json_text(out, "result", engine_check_outcome_name(engine_check_outcome(r)));
	json_number(out, "objects", r->objects);
	json_number(out, "chunks", r->chunks);
	json_number(out, "bytes", r->bytes);
	json_number(out, "decoded", r->decoded);
	json_number(out, "decoded_bytes", r->decoded_bytes);
	json_number(out, "errors", r->findings[ENGINE_CHECK_ERROR]);
	json_number(out, "unchecked", r->findings[ENGINE_CHECK_UNCHECKED]);
	json_number(out, "unfinished", r->findings[ENGINE_CHECK_UNFINISHED]);
	json_number(out, "warnings", r->findings[ENGINE_CHECK_WARNING]);
	json_number(out, "notes", r->findings[ENGINE_CHECK_NOTE]);
	json_number(out, "omitted", r->omitted);
	str_addf(out, "\"findings\": [%s]}\n", str_text(findings));
}

/* ---- both ---- */

void check_format_finding(struct check_format *k, const struct engine_check_finding *f,
			  struct str *out)
{
	if (k->json) {
		str_add(&k->findings, k->findings.b.len ? ", {" : "{");
		json_text(&k->findings, "severity", engine_check_severity_name(f->severity));
		json_text(&k->findings, "object", f->object);
		json_text(&k->findings, "key", f->key);
		str_add(&k->findings, "\"text\": ");
		str_add_json(&k->findings, f->text);
		str_add(&k->findings, "}");
	} else {
		/* "error: /home/u/a.h5: /group/data: KEY: the chunk has 7 bytes instead of 8" */
		str_addf(out, "%s: ", engine_check_severity_name(f->severity));
		add_part(out, f->path);
		add_part(out, f->object);
		add_part(out, f->key);
		str_add_printable(out, f->text);
		str_add(out, "\n");
	}
}

void check_format_result(struct check_format *k, const struct engine_check_result *r,
			 struct str *out)
{
	k->outcomes[engine_check_outcome(r)]++;
	if (k->json)
		json_result(r, &k->findings, out);
	else
		text_result(r, out);
	out->bad |= k->findings.bad;
	str_release(&k->findings);
}

void check_format_totals(const struct check_format *k, struct str *out)
{
	uint64_t n = 0;
	for (int i = 0; i < ENGINE_CHECK_OUTCOMES; i++)
		n += k->outcomes[i];
	if (k->json || n == 1)
		return;
	str_addf(out, "domains %" PRIu64, n);
	for (int i = 0; i < ENGINE_CHECK_OUTCOMES; i++)
		str_addf(out, ", %s %" PRIu64,
			 engine_check_outcome_name((enum engine_check_outcome)i), k->outcomes[i]);
	str_add(out, "\n");
}

bool check_format_is_sound(const struct check_format *k)
{
	for (int i = 0; i < ENGINE_CHECK_OUTCOMES; i++)
		if (i != ENGINE_CHECK_SOUND && k->outcomes[i])
			return false;
	return true;
}
