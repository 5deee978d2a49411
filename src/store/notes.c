/* SPDX-License-Identifier: Apache-2.0 */
/* The notes and marks of objects. What a bucket has is foreign text, and programs show notes on
 * terminals. Pure. */
#include <store/implement.h>

#include <string.h>

#include <base/printable.h>

bool store_note_ok(const char *text)
{
	char copy[STORE_NOTE_MAX + 1];
	return text[0] && strlen(text) <= STORE_NOTE_MAX &&
	       (printable(copy, sizeof(copy), text), strcmp(copy, text) == 0);
}

void store_answer_note(struct store_request *req, const char *text, size_t n)
{
	struct store_answer *a = &req->answer;
	a->has_note = true;
	a->note[0] = '\0';
	if (n > STORE_NOTE_MAX)
		return;
	memcpy(a->note, text, n);
	a->note[n] = '\0';
	if (strlen(a->note) != n || !store_note_ok(a->note))
		a->note[0] = '\0';
}

bool store_mark_ok(const char *text)
{
	const size_t n = strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz-");
	return n > 0 && n <= STORE_MARK_MAX && text[n] == '\0';
}

void store_answer_mark(struct store_request *req, const char *text, size_t n)
{
	struct store_answer *a = &req->answer;
	a->has_mark = true;
	a->mark[0] = '\0';
	if (n > STORE_MARK_MAX)
		return;
	memcpy(a->mark, text, n);
	a->mark[n] = '\0';
	if (strlen(a->mark) != n || !store_mark_ok(a->mark))
		a->mark[0] = '\0';
}
