/* SPDX-License-Identifier: Apache-2.0 */
/* Header and records of a file of the gc log: see gc_log_record.c. Pure. */
#ifndef JOURNAL_GC_LOG_RECORD_H
#define JOURNAL_GC_LOG_RECORD_H

#include <journal/gc_log.h>

enum {
	GC_HEADER = 64,
	GC_RECORD = 1088,
	GC_VERSION = 1,
	GC_FREE = 1, /* result of gc_log_decode() */
};

void gc_log_header_encode(uint8_t bytes[GC_HEADER]);
/* n is the number of bytes of the file that were read. Fails with -EBADMSG if the header is
 * damaged, and with -ENOTSUP if it has a later version. */
int gc_log_header_decode(const void *bytes, size_t n, struct err *err);

/* Fails with -ENAMETOOLONG if the path is empty or does not fit. */
int gc_log_encode(const struct gc_entry *entry, uint32_t number, uint8_t bytes[GC_RECORD]);
/* Borrows out->path from the bytes. Returns 0, GC_FREE if the record is not in use, or -EBADMSG. */
int gc_log_decode(const uint8_t bytes[GC_RECORD], uint32_t number, struct gc_entry *out);

#endif
