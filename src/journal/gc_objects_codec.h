/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of removed objects: see gc_objects_codec.c. Pure. */
#ifndef JOURNAL_GC_OBJECTS_CODEC_H
#define JOURNAL_GC_OBJECTS_CODEC_H

#include <base/mem.h>
#include <journal/gc_objects.h>

enum { GC_OBJECTS_MAX = 256 << 20 /* bytes of a list */ };

/* Appends the file of a list. Fails with -EINVAL, -E2BIG or -ENOMEM. */
int gc_objects_encode(const struct gc_objects_list *list, struct bytes *out, struct err *err);
/* The list points to the bytes; the caller frees out->objects. Fails with -EBADMSG, with -ENOTSUP
 * if the list has a later version, and with -ENOMEM. */
int gc_objects_decode(const uint8_t *file, size_t n, struct gc_objects_list *out, struct err *err);

#endif
