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
/* n: bytes of the file that were read. -EBADMSG: damaged; -ENOTSUP: a later version. */
int gc_log_header_decode(const void *bytes, size_t n, struct err *err);

/* -ENAMETOOLONG. */
int gc_log_encode(const struct gc_entry *entry, uint32_t number, uint8_t bytes[GC_RECORD]);
/* out->path is borrowed from the bytes. GC_FREE: the record is not in use; -EBADMSG. */
int gc_log_decode(const uint8_t bytes[GC_RECORD], uint32_t number, struct gc_entry *out);

#endif
