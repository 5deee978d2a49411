/* SPDX-License-Identifier: Apache-2.0 */
/* The notes and marks of objects. What a bucket has is foreign text, and programs show notes on
 * terminals. Pure. */
#include <store/implement.h>

#include <string.h>

#include <base/printable.h>

/* Copies a text, or "" if it is not valid. */
static void copy_valid(char *to, size_t max, const char *text, size_t n,
		       bool (*is_valid)(const char *text))
{
	const size_t length = n <= max ? n : 0;
	memcpy(to, text, length);
	to[length] = '\0';
	if (strlen(to) != n || !is_valid(to))
		to[0] = '\0';
}

bool store_note_ok(const char *text)
{
	char copy[STORE_NOTE_MAX + 1];
	return text[0] && strlen(text) <= STORE_NOTE_MAX &&
	       (printable(copy, sizeof(copy), text), strcmp(copy, text) == 0);
}

void store_answer_note(struct store_request *req, const char *text, size_t n)
{
	req->answer.has_note = true;
	copy_valid(req->answer.note, STORE_NOTE_MAX, text, n, store_note_ok);
}

bool store_mark_ok(const char *text)
{
	const size_t n = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz-");
	return n > 0 && n <= STORE_MARK_MAX && text[n] == '\0';
}

void store_answer_mark(struct store_request *req, const char *text, size_t n)
{
	req->answer.has_mark = true;
	copy_valid(req->answer.mark, STORE_MARK_MAX, text, n, store_mark_ok);
}
