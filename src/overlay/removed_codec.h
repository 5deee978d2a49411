/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of removed objects: see removed_codec.c. Pure. */
#ifndef OVERLAY_REMOVED_CODEC_H
#define OVERLAY_REMOVED_CODEC_H

#include <base/mem.h>
#include <overlay/removed.h>

enum { REMOVED_MAX = 256 << 20 /* bytes of a list */ };

/* Appends the file of a list. -EINVAL, -E2BIG, -ENOMEM. */
int removed_encode(const struct removed_list *list, struct bytes *out, struct err *err);
/* The list points to the bytes; the caller frees list->objects. -EBADMSG; -ENOTSUP: a later
 * version; -ENOMEM. */
int removed_decode(const uint8_t *file, size_t n, struct removed_list *out, struct err *err);

#endif
