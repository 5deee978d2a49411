/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The note of an object is user-defined metadata: a header of the requests that put the object, and
 * of the answers to its GETs and HEADs. S3 allows 2 KiB for all such headers of an object, in
 * ASCII. So the text is percent-encoded. Pure.
 */
#ifndef S3_OBJECT_NOTE_H
#define S3_OBJECT_NOTE_H

#include <stdbool.h>

#include <aws/sigv4.h>
#include <store/store.h>

#define S3_NOTE_HEADER "x-amz-meta-hsmount-kept"

enum { S3_NOTE_VALUE = 3 * STORE_NOTE_MAX + 1 }; /* bytes, with the NUL */

/* Makes the header of a put, whose value is written to `value`. note is NULL or valid
 * (store_note_ok()). Returns the number of headers: 0 or 1. */
size_t s3_note_header(const char *note, char value[S3_NOTE_VALUE], struct sigv4_pair *header);
/* Decodes the value of the header. Returns false if no text has exactly this value. The decoded
 * text may be invalid as a note. */
bool s3_note_read(const char *value, char note[STORE_NOTE_MAX + 1]);

#endif
