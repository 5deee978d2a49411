/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_view.h. */
#include "draft_view.h"

#include "writers.h"

enum draft_view draft_view(struct session *s, pid_t thread, const char *path,
			   struct engine_stat *st)
{
	bool alone = false;
	if (!s->opt->write || !engine_draft_stat(s->engine, path, st, &alone))
		return DRAFT_NONE;
	return alone || thread == 0 || writers_has(s->writers, st->version, thread) ? DRAFT_SEEN
										    : DRAFT_HIDDEN;
}
