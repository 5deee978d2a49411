/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses JSON as the service and programs that write Zarr stores write it. Both use Python's JSON
 * writer, which writes forms that Jansson refuses: NaN, Infinity and -Infinity without quotes,
 * integers of any size, lone surrogates ("\udce9"), and NUL in strings and keys. Some programs that
 * write Zarr stores use further forms (json_text_load_lenient()). A lexical pass before Jansson
 * rewrites exactly these forms into strings that no other text can become. json_string_decode()
 * undoes it.
 *
 * The escape character is U+0010 (DLE). JSON text can contain it only as "\u0010", because control
 * characters are refused. So the pass sees each one, and the encoding is reversible:
 *
 *   \u0010          ->  DLE '1'
 *   \u0000          ->  DLE '0'
 *   lone \uXXXX     ->  DLE 's' and its four hex digits, as written
 *   NaN, 2^63, …    ->  a string of DLE 'n' and the literal as written
 *
 * Valid surrogate pairs and all other text remain unchanged. A lone surrogate is decoded to the
 * three bytes that UTF-8 would use if it were a character (U+DCE9: ED B3 A9), and the text is
 * marked as not UTF-8.
 *
 * Limits: JSON_TEXT_MAX bytes, JSON_TEXT_DEPTH levels, and the estimated memory of the parsed
 * document. A document belongs to one thread at a time.
 */
#ifndef JSON_READER_H
#define JSON_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <hsmount/err.h>
#include <base/mem.h>

#include <json/reader_memory.h>

enum {
	JSON_TEXT_MAX = 256 << 20, /* bytes of one document */
	JSON_TEXT_DEPTH = 128,	   /* levels of objects and lists */
	JSON_TEXT_PATH = 2,	   /* names of the path to an object that is kept apart */
};

static inline void cleanup_json(json_t **j)
{
	json_decref(*j);
}
#define auto_json __attribute__((cleanup(cleanup_json)))

/* Parses a whole document, which must be an object. *doc is the caller's (json_decref()). If a
 * member occurs twice, the last one counts. Fails with -EIO if the text is malformed or above a
 * limit, and with -ENOMEM. */
int json_text_load(const void *text, size_t n, json_t **doc, struct err *err);
/* Does the same, but also accepts forms that some programs have written into Zarr documents: a byte
 * order mark in front, \' in strings and names, and nan, -nan, -NaN, inf and -inf without quotes,
 * which become literals. -0 becomes a literal, too, because Jansson's integers have no negative
 * zero. */
int json_text_load_lenient(const void *text, size_t n, json_t **doc, struct err *err);

/* A document without one of its objects, which may have a million members. In Jansson's memory,
 * they would take ten times as many bytes as their text. */
struct json_text {
	json_t *doc;
	struct bytes rewritten; /* the memory of the text below, if the pass has changed anything */
	const char *apart; /* the text of the object, which has been delimited but not checked; NULL
			      if the document has no such member, or if doc has its value */
	size_t apart_len;
};
/* How to load a document. If all members are zero, it is loaded as by json_text_load(). */
struct json_text_how {
	bool lenient; /* as json_text_load_lenient() */
	/* The names that lead to the object that is kept apart. One name is that of a member of the
	 * document. With two names, the first is that of a member of the document, and the second
	 * that of a member of its value. If path[0] is NULL, nothing is kept apart. */
	const char *path[JSON_TEXT_PATH];
};
/* Loads a document. doc and rewritten are the caller's. The text must outlive them. If an object is
 * to be kept apart, an area of reader_memory.h must be active, and doc is in it. Fails like
 * json_text_load(). */
int json_text_load_as(const void *text, size_t n, const struct json_text_how *how,
		      struct json_text *out, struct err *err);
/* Does the same with a path of one name, which may be NULL, and not leniently. */
int json_text_load_apart(const void *text, size_t n, const char *member, struct json_text *out,
			 struct err *err);

/* The members of the object that was kept apart, in the order of the text. A name may occur twice.
 * An area of reader_memory.h must be active: it holds one member at a time. */
struct json_text_members {
	json_t *name, *value; /* valid until the next call */
	const char *text;
	size_t n, pos;
	struct json_text_mark mark;
};
void json_text_members_begin(struct json_text_members *m, const struct json_text *json);
/* Moves to the next member. Returns 1 if name and value are those of a member, or 0 if there are no
 * more. Fails with -EIO if the text is malformed, and with -ENOMEM. */
int json_text_next(struct json_text_members *m, struct err *err);
void json_text_members_end(struct json_text_members *m);

/* Decoded text. */
struct json_string {
	const char *s; /* n bytes, then a NUL */
	size_t n;
	bool utf8;    /* false if it contains a lone surrogate */
	bool has_nul; /* one of the n bytes is NUL */
	bool literal; /* it is a number such as NaN or 18446744073709551615 as written, not text */
};
/* Decodes a Jansson string or key of n bytes. out->s points to Jansson's memory if the text needs
 * no decoding, otherwise to scratch, which the next call overwrites. Fails with -ENOMEM. */
int json_string_decode(const char *s, size_t n, struct bytes *scratch, struct json_string *out);

/* Returns the string member of an object, not decoded, or NULL if there is no such string. It is
 * for comparison with the words of the schema, which need no decoding. */
const char *json_text_word(const json_t *object, const char *member);

#endif
