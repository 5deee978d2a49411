/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the user block of a domain from a file, or from the bucket. */
#ifndef DOMAIN_READ_USER_BLOCK_H
#define DOMAIN_READ_USER_BLOCK_H

#include <base/source.h>
#include <data/user_block.h>
#include <hsmount/err.h>

struct arena;
struct domain;
struct domain_hint;

/* Reads the first `size` bytes of a file, which are in front of its superblock. *out is in the
 * arena; it is NULL if size is 0. Fails with -EFBIG if the block is larger than a domain can hold,
 * -ENOMEM, or an error of the source. */
int user_block_of_file(struct source *file, uint64_t size, struct arena *a,
		       const struct user_block **out, struct err *err);

/* Reads the object that has the user block of a domain, if the document of the root group does not
 * have it. A block that is damaged, or that the bucket does not have, is shown as zeros, and the
 * tree gets a note. Does nothing if hint->plan is_brief. Fails with an error of the store, or with
 * -ENOMEM. */
int domain_read_user_block(struct domain *d, const struct domain_hint *hint, struct err *err);

#endif
