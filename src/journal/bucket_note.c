/* SPDX-License-Identifier: Apache-2.0 */
/* See bucket_note.h. Any thread. */
#include "bucket_note.h"

#include <base/fd.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <journal/private_file.h>
#include "levels.h"

enum { NOTE_MAX = 16 << 10 };

static const char file_name[] = "bucket", new_name[] = "bucket.new";

void bucket_note_release(struct bucket_note *note)
{
	str_release(&note->name);
	str_release(&note->identity);
}

/* Reads the text of the file. Returns false if the file cannot be read, is too long, or is not a
 * text with a newline at its end. */
static bool read_text(int dir, struct bytes *text)
{
	size_t n;
	auto_close int fd = file_open(dir, file_name, O_RDONLY);
	if (fd < 0 || bytes_reserve(text, NOTE_MAX) || file_read(fd, 0, text->data, NOTE_MAX, &n))
		return false;
	if (n < 2 || n == NOTE_MAX || memchr(text->data, '\0', n) || text->data[n - 1] != '\n')
		return false;
	text->data[n - 1] = '\0';
	return true;
}

bool bucket_note_read(int dir, const char *digits, struct bucket_note *out)
{
	auto_bytes struct bytes text = {0};
	char found[LEVEL_DIGITS];
	*out = (struct bucket_note){.name = {.bad = false}};
	if (!read_text(dir, &text))
		return false;
	const char *name = (const char *)text.data, *end = strchr(name, '\n');
	if (!end || level_of_bucket(end + 1, found, NULL) || strcmp(found, digits) != 0)
		return false;
	str_add(&out->identity, end + 1);
	str_addn(&out->name, name, (size_t)(end - name));
	if (end == name)
		str_add(&out->name, end + 1);
	if (str_ok(&out->name) && str_ok(&out->identity))
		return true;
	bucket_note_release(out);
	*out = (struct bucket_note){.name = {.bad = false}};
	return false;
}

void bucket_note_write(int dir, const char *digits, const char *name, const char *identity)
{
	auto_bucket_note struct bucket_note old;
	auto_str struct str text = {0};
	if (bucket_note_read(dir, digits, &old))
		return;
	str_addf(&text, "%s\n%s\n", strchr(name, '\n') ? "" : name, identity);
	if (!str_ok(&text) || text.b.len >= NOTE_MAX)
		return;
	auto_close int fd = file_open(dir, new_name, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0 || file_write(fd, 0, str_text(&text), text.b.len) || fsync(fd) ||
	    renameat(dir, new_name, dir, file_name))
		unlinkat(dir, new_name, 0);
}
