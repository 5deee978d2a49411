/* SPDX-License-Identifier: Apache-2.0 */
/* What an import tells its caller while it runs. */
#include "import_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void import_note(const struct import *im, const char *fmt, ...)
{
	char raw[ERR_MAX];
	struct err text = ERR_INIT; /* err_set() replaces bytes that cannot be printed */
	va_list ap;
	if (!im->opt->note)
		return;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	err_set(&text, -EIO, "%s", raw);
	im->opt->note(im->opt->ctx, text.msg);
}

void import_progress(const struct import *im)
{
	struct put_queue_counts counts;
	if (!im->opt->progress)
		return;
	if (im->opt->link && im->opt->link->verify) {
		/* All data are referred to before the first are verified. */
		if (im->verified)
			im->opt->progress(im->opt->ctx, im->verified, im->result->linked_bytes);
		return;
	}
	if (im->opt->link) {
		im->opt->progress(im->opt->ctx, im->result->linked_bytes, im->opt->file.size);
		return;
	}
	put_queue_counts(im->queue, &counts);
	im->opt->progress(im->opt->ctx, im->passed + counts.weight, im->total);
}

const char *import_file_name(const struct import *im)
{
	const struct import_file *file = &im->opt->file;
	return file->shown ? file->shown : file->name;
}

const char *import_path(const struct import *im, uint32_t number)
{
	return number < im->npaths && im->paths[number] ? im->paths[number] : "";
}
