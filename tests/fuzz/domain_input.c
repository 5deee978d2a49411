/* SPDX-License-Identifier: Apache-2.0 */
#include "domain_input.h"

#include <stdlib.h>
#include <string.h>

#include <base/hex.h>
#include <store/store.h>

static const char hex_mark[] = "hex:";
enum { HEX_MARK = sizeof(hex_mark) - 1 };

static bool unhex(const char *digits, size_t n, struct bytes *out)
{
	if (n % 2 || bytes_reserve(out, n / 2 + 1))
		return false;
	for (size_t i = 0; i < n; i += 2) {
		const int high = hex_digit(digits[i]), low = hex_digit(digits[i + 1]);
		if (high < 0 || low < 0)
			return false;
		out->data[out->len++] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static bool put_line(struct input *in, const char *line, size_t n)
{
	const char *space = memchr(line, ' ', n);
	char key[STORE_KEY_MAX + 1];
	auto_bytes struct bytes body = {0};
	if (!space || space == line || space - line > STORE_KEY_MAX || memchr(line, 0, n))
		return false;
	memcpy(key, line, (size_t)(space - line));
	key[space - line] = '\0';
	const char *text = space + 1;
	const size_t len = n - (size_t)(text - line);
	if (len < HEX_MARK || memcmp(text, hex_mark, HEX_MARK) != 0)
		return input_put(in, key, text, len);
	return unhex(text + HEX_MARK, len - HEX_MARK, &body) &&
	       input_put(in, key, body.data, body.len);
}

bool input_parse(struct input *in, const uint8_t *text, size_t n)
{
	const char *line = (const char *)text;
	while (n > 0 && n <= INPUT_MAX) {
		const char *end = memchr(line, '\n', n);
		const size_t len = end ? (size_t)(end - line) : n;
		if (len > 0 && line[0] != '#' && !put_line(in, line, len))
			return false;
		n -= end ? len + 1 : len;
		line += end ? len + 1 : len;
	}
	return n == 0;
}

bool input_put(struct input *in, const char *key, const void *body, size_t n)
{
	auto_bytes struct bytes copy = {0};
	size_t i = 0;
	if (!store_key_ok(key) || n > INPUT_BODY_MAX || (n && bytes_append(&copy, body, n)))
		return false;
	while (i < in->n && strcmp(in->v[i].key, key) != 0)
		i++;
	if (i == INPUT_OBJECTS_MAX)
		return false;
	if (i == in->n) {
		in->v[i] = (struct input_object){.key = strdup(key)};
		if (!in->v[i].key)
			return false;
		in->n++;
	}
	bytes_release(&in->v[i].body);
	in->v[i].body = copy;
	copy = (struct bytes){0};
	return true;
}

static void release(struct input_object *o)
{
	free(o->key);
	bytes_release(&o->body);
}

void input_remove(struct input *in, size_t i)
{
	release(&in->v[i]);
	in->n--;
	memmove(&in->v[i], &in->v[i + 1], (in->n - i) * sizeof(in->v[0]));
}

/* Appends the body as text if it is printable and has one line, otherwise as hexadecimal digits. */
static bool write_body(const struct bytes *body, struct bytes *text)
{
	static const char digits[] = "0123456789abcdef";
	bool readable = body->len < HEX_MARK || memcmp(body->data, hex_mark, HEX_MARK) != 0;
	for (size_t i = 0; i < body->len; i++)
		readable = readable && body->data[i] >= ' ' && body->data[i] < 0x7f;
	if (readable)
		return body->len == 0 || bytes_append(text, body->data, body->len) == 0;
	if (bytes_append(text, hex_mark, HEX_MARK))
		return false;
	for (size_t i = 0; i < body->len; i++) {
		const char pair[2] = {digits[body->data[i] >> 4], digits[body->data[i] & 15]};
		if (bytes_append(text, pair, sizeof(pair)))
			return false;
	}
	return true;
}

bool input_write(const struct input *in, struct bytes *text)
{
	for (size_t i = 0; i < in->n; i++)
		if (bytes_append(text, in->v[i].key, strlen(in->v[i].key)) ||
		    bytes_append(text, " ", 1) || !write_body(&in->v[i].body, text) ||
		    bytes_append(text, "\n", 1))
			return false;
	return true;
}

void input_release(struct input *in)
{
	while (in->n > 0)
		release(&in->v[--in->n]);
}
