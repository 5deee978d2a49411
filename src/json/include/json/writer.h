/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON as Python's json.dumps() does: one line, ASCII only, and the forms that only Python
 * reads (bare NaN and Infinity, integers of any size). reader.h reads them all.
 *
 * The writer puts the separators. Errors are sticky: after a failed allocation it writes nothing,
 * and `bad` is set. So code that writes a document checks once, at the end.
 */
#ifndef JSON_WRITER_H
#define JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/mem.h>

struct writer {
	struct bytes *out;
	bool bad;    /* out of memory */
	bool behind; /* a value has just ended, so a separator precedes the next one */
};

/* The bracket is '{' or '['; '}' or ']'. */
void write_open(struct writer *w, char bracket);
void write_close(struct writer *w, char bracket);
/* Write the name of a member, which is a word of the schema or text of n bytes. */
void write_key(struct writer *w, const char *word);
void write_key_text(struct writer *w, const char *text, size_t n);
/* Writes text of n bytes. A byte that is not part of a UTF-8 character becomes \udcXX, as Python's
 * "surrogateescape" does it. */
void write_text(struct writer *w, const char *text, size_t n);
void write_word(struct writer *w, const char *word);
void write_uint(struct writer *w, uint64_t v);
void write_int(struct writer *w, int64_t v);
/* Writes the shortest of 15 to 17 digits that are read as the same value. */
void write_real(struct writer *w, double v);
void write_bool(struct writer *w, bool v);
void write_null(struct writer *w);
/* Writes nanoseconds since the epoch, as seconds with six digits after the point. */
void write_time(struct writer *w, int64_t ns);
/* Writes a value whose JSON text of n bytes is known. */
void write_json(struct writer *w, const char *text, size_t n);
/* Writes text that is the base64 form of bytes. */
void write_base64(struct writer *w, const void *bytes, size_t n);

/* Write a member with text that ends with a NUL, with a number, or with a list of n numbers. */
void write_member_word(struct writer *w, const char *key, const char *word);
void write_member_uint(struct writer *w, const char *key, uint64_t v);
void write_member_list(struct writer *w, const char *key, uint32_t n, const uint32_t *numbers);
/* Begins a member that is an object or a list. */
void write_member_open(struct writer *w, const char *key, char bracket);

#endif
