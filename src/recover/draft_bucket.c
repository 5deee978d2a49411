/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the bucket of a draft: see left_drafts.h. */
#include "left_drafts.h"

#include <errno.h>

#include <engine/parts.h>
#include <bucket/store_stack.h>

static int check_identity(const struct recover_found *f, const struct engine *e, const char *name,
			  struct err *err)
{
	auto_str struct str identity = {0};
	int rc = store_stack_identity(&e->bucket.stack, name, &identity, err);
	if (rc)
		return rc;
	/* Without the note, the digits in the name of its directory still identify the bucket. */
	return journal_is_of(f->digits, str_text(&identity))
		       ? 0
		       : err_set(err, -EINVAL,
				 "%s is not the bucket of draft %s, which is %s: check -b and the "
				 "options",
				 name, f->id,
				 str_text(&f->name)[0] ? str_text(&f->name) : "another");
}

int recover_open_bucket(const struct recover_found *f, const struct engine_options *options,
			const char *journal, struct engine **out, struct err *err)
{
	struct engine_options opt = *options;
	if (!opt.bucket)
		opt.bucket = str_text(&f->name);
	if (!opt.bucket[0])
		return err_set(err, -EINVAL,
			       "the journal does not know the name of the bucket: use -b BUCKET");
	opt.write = journal;
	opt.journal_dir = journal;
	/* The draft may be the first one of a new bucket. */
	opt.allow_empty = true;
	/* There may be no other mount that deletes what the commit replaces. */
	opt.gc_delay = 0;
	int rc = engine_open(&opt, out, err);
	if (rc)
		return rc;
	rc = check_identity(f, *out, opt.bucket, err);
	if (rc) {
		engine_close(*out);
		*out = NULL;
	}
	return rc;
}
