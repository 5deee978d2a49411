/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes a JSON text in single places: finds where the members of an object are, collects
 * replacements, and makes the new text, whose other bytes stay as they are.
 *
 * The text has been accepted by json_text_load(). The scanner is bounded nevertheless: it never
 * goes beyond the end of the text, and it does not recurse. Pure.
 */
#ifndef JSON_SPLICE_H
#define JSON_SPLICE_H

#include <stdbool.h>
#include <stddef.h>

#include <hsmount/err.h>
#include <base/mem.h>

#include <json/writer.h>

struct splice_member {
	/* The name as Jansson has it after json_text_load(): without escapes. It ends with a NUL
	 * and contains none. */
	const char *name;
	size_t start, name_end; /* the name with its quotes */
	size_t value, end;	/* the value, without the white space around it */
};

struct splice_object {
	size_t inside; /* behind the opening bracket */
	size_t n;
	const struct splice_member *members; /* in the order of the text */
};

/* Finds the members of the object whose opening bracket is at byte `at` of the text, or behind the
 * white space there. *out is in the arena. Fails with -EIO if there is no object, and with
 * -ENOMEM. */
int splice_scan(const char *text, size_t n, size_t at, struct arena *a, struct splice_object *out,
		struct err *err);
/* Returns the member of this name that counts, which is the last one, or NULL if there is none.
 * Sets *count to the number of members of this name; count may be NULL. */
const struct splice_member *splice_find(const struct splice_object *o, const char *name,
					size_t *count);
/* Returns where a new member goes, which is behind the last one. */
size_t splice_end(const struct splice_object *o);

/* The text of n bytes, and its replacements. Release it at the end. */
struct splice {
	const char *text;
	size_t n;
	struct bytes edits; /* of struct splice_edit */
	/* Where the new bytes are written. splice_begin() notes where those of the next replacement
	 * start. The writer's error is checked by splice_apply(). */
	struct bytes fresh;
	size_t begun;
	struct writer w;
};
/* The struct must not be moved after that. */
void splice_init(struct splice *s, const char *text, size_t n);
void splice_release(struct splice *s);
/* Starts a replacement. behind is true if the new values follow others, so that the writer begins
 * with a comma. */
void splice_begin(struct splice *s, bool behind);
/* Replaces the bytes [start, end) by what was written since splice_begin(). Replacements must not
 * overlap. Those at the same place follow each other in the order of the calls. */
void splice_commit(struct splice *s, size_t start, size_t end);
/* Removes the i-th member with the comma in front of it. If no earlier member stays (`first`),
 * removes the comma behind it. */
void splice_remove_member(struct splice *s, const struct splice_object *o, size_t i, bool first);
/* Appends the new text to *out. Fails with -EIO if replacements overlap, and with -ENOMEM. */
int splice_apply(struct splice *s, struct bytes *out, struct err *err);

#endif
