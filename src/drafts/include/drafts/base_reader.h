/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies beneath a draft that an earlier process has left: a plain object, or the image of a
 * domain, as it was when the file was opened. The bucket may have another version by now, or none;
 * then an image cannot be opened, and reads of an object fail.
 */
#ifndef DRAFTS_BASE_READER_H
#define DRAFTS_BASE_READER_H

#include <hsmount/engine.h>

#include <overlay/draft.h>

struct bucket;
struct draft_base;

/* Zero-initialised, it is closed: reads fail with -EIO. */
struct base_reader {
	struct draft_base *base;
};
/* Returns what draft_open() needs. What lies beneath may be opened later. */
struct draft_beneath base_reader_beneath(struct base_reader *o);
/* Returns whether a domain lies beneath, which programs have changed in place. */
bool base_reader_is_domain(const struct draft_about *about);
/* Returns whether the file of this domain had another layout when the draft was begun
 * (IMAGE_REVISION). Then base_reader_open() fails with -EINVAL and this text. */
bool base_reader_has_other_layout(const struct draft_about *about);
#define BASE_READER_OTHER_LAYOUT                                                                   \
	"another version of hsmount has written it, which lays out the files of domains in "       \
	"another way; only that version can read or commit it"
/* Opens what lies beneath. Sends requests only for a domain. Fails with -EINVAL if nothing that can
 * be read lies beneath; with -ESTALE if the domain has changed since, or is not there any more;
 * with -ENOMEM; and with errors of the bucket. */
int base_reader_open(struct base_reader *o, struct bucket *bucket, const struct draft_about *about,
		     struct err *err);
void base_reader_close(struct base_reader *o);

#endif
