/* SPDX-License-Identifier: Apache-2.0 */
/* See recover_format.h, and doc/hsimage.1 for the JSON. */
#include "recover_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static void add_known(struct str *out, const char *text)
{
	if (text[0])
		str_add_printable(out, text);
	else
		str_add(out, "-");
}

/* "0123456789abcdef  waiting                   1234  2026-11-23 06:12  /srv/b  home/a.h5: WHY" */
void recover_format_text(const struct engine_draft_item *item, struct str *out)
{
	char date[32] = "-", size[32] = "-";
	const time_t t = (time_t)(item->created_ns / 1000000000);
	struct tm tm;
	if (item->created_ns && gmtime_r(&t, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
	if (item->has_size)
		snprintf(size, sizeof(size), "%" PRIu64, item->size);
	str_addf(out, "%s  %-15s  %15s  %16s  ", item->id, engine_draft_state_name(item->state),
		 size, date);
	add_known(out, item->bucket);
	str_add(out, "  ");
	add_known(out, item->path);
	str_add(out, item->changes_domain ? ": changes the domain in place; " : ": ");
	str_add_printable(out, item->why);
	str_add(out, "\n");
}

static void add_member(struct str *out, const char *member, const char *text)
{
	str_addf(out, "\"%s\": ", member);
	str_add_json(out, text);
	str_add(out, ", ");
}

void recover_format_json(const struct engine_draft_item *item, struct str *out)
{
	str_add(out, "{");
	add_member(out, "id", item->id);
	add_member(out, "state", engine_draft_state_name(item->state));
	if (item->has_size)
		str_addf(out, "\"size\": %" PRIu64 ", ", item->size);
	else
		str_add(out, "\"size\": null, ");
	if (item->created_ns) {
		str_add(out, "\"begun\": \"");
		str_add_time(out, item->created_ns);
		str_add(out, "\", ");
	} else {
		str_add(out, "\"begun\": null, ");
	}
	add_member(out, "bucket", item->bucket);
	add_member(out, "file", item->path);
	str_addf(out, "\"changes_domain\": %s, ", item->changes_domain ? "true" : "false");
	str_add(out, "\"why\": ");
	str_add_json(out, item->why);
	str_add(out, "}\n");
}

void recover_format_question(const struct engine_draft_item *item, bool commits, struct str *out)
{
	if (commits && item->changes_domain)
		str_add(out, "If the program had not finished, the data may be wrong, also if all "
			     "structures of the file can be read.\n");
	str_addf(out, "%s draft %s", commits ? "Commit" : "Delete", item->id);
	if (item->path[0]) {
		str_add(out, " of ");
		str_add_printable(out, item->path);
	}
	if (item->has_size)
		str_addf(out, ", %" PRIu64 " bytes", item->size);
	str_add(out, "? [y/N] ");
}

bool recover_format_waits(const struct engine_draft_item *item)
{
	return item->state != ENGINE_DRAFT_IN_USE;
}
