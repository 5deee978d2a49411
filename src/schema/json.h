/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as the service writes it. Python's writer, and so the bucket, goes beyond what Jansson
 * takes: bare NaN, Infinity and -Infinity, integers of any size, lone surrogates ("\udce9"), NUL
 * inside strings and keys. A lexical pass in front of Jansson rewrites exactly these, into strings
 * that no other text can turn into, and the accessors here undo it.
 *
 * The escape is U+0010 (DLE). It can occur in JSON text only as "\u0010" (bare control bytes are
 * refused), so the pass sees each one and the encoding is reversible:
 *
 *   \u0010          ->  DLE '1'
 *   \u0000          ->  DLE '0'
 *   lone \uXXXX     ->  DLE 's' and its four hex digits, as written
 *   NaN, 2^63, …    ->  a string of DLE 'n' and the literal as written
 *
 * Valid surrogate pairs and all other text pass untouched. A lone surrogate comes back as the three
 * bytes that UTF-8 would use for it if it were a character (U+DCE9: ED B3 A9), and the text is
 * then marked as no UTF-8.
 *
 * Bounds: SCHEMA_JSON_MAX bytes, SCHEMA_JSON_DEPTH levels, and a limit on the memory that the
 * parsed document will take. Documents are not shared between threads.
 */
#ifndef SCHEMA_JSON_H
#define SCHEMA_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <hsmount/err.h>
#include <base/mem.h>

static inline void cleanup_json(json_t **j)
{
	json_decref(*j);
}
#define auto_json __attribute__((cleanup(cleanup_json)))

/* A whole document, which must be an object. *doc is the caller's (json_decref). Of a member that
 * occurs twice the last one wins. -EIO malformed or over a limit; -ENOMEM. */
int schema_json_load(const void *text, size_t n, json_t **doc, struct err *err);

/* Text as the document means it. */
struct schema_text {
	const char *s; /* n bytes; a NUL behind them */
	size_t n;
	bool utf8;    /* false: has a lone surrogate */
	bool has_nul; /* a NUL among the n bytes */
	bool literal; /* not text but a number literal ("NaN", "18446744073709551615") */
};
/* Decodes a Jansson string or key of n bytes. s stays Jansson's memory where nothing has to be
 * undone, else it is decoded into scratch (overwritten by the next call). -ENOMEM. */
int schema_text_decode(const char *s, size_t n, struct bytes *scratch, struct schema_text *out);

/* The string member of an object as Jansson holds it, NULL when it is none: for comparison with
 * the words of the schema, which need no decoding. */
const char *schema_json_word(const json_t *object, const char *member);

#endif
