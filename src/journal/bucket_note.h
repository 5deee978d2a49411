/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `bucket` in the directory of a bucket: it tells a person, and a process without that
 * bucket, which bucket it is. The first line is its name, as a command line takes it. The rest is
 * its identity, whose SHA-256 is the name of the directory, and a newline.
 *
 * Nothing depends on the file: it is missing in directories of older versions.
 */
#ifndef JOURNAL_BUCKET_NOTE_H
#define JOURNAL_BUCKET_NOTE_H

#include <stdbool.h>

#include <base/str.h>

struct bucket_note {
	struct str name, identity; /* the owner releases both */
};

/* Reads the file in the directory `dir`, whose name is `digits`. Returns false if the file is
 * missing, or does not match that name; *out is empty then. */
bool bucket_note_read(int dir, const char *digits, struct bucket_note *out);
/* Writes the file, unless it is there and correct. The caller holds the guard of the directory. A
 * failure is ignored: the next process tries again. */
void bucket_note_write(int dir, const char *digits, const char *name, const char *identity);
void bucket_note_release(struct bucket_note *note);
#define auto_bucket_note __attribute__((cleanup(bucket_note_release)))

#endif
