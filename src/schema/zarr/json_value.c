/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads values in the documents of Zarr: numbers by their lexical kind, counts, extension points,
 * and the text of a value. Numbers that Jansson cannot hold are literals (json/reader.h). Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <json/numbers.h>

int zarr_string(struct zarr_build *b, const json_t *v, struct json_string *out, struct err *err)
{
	const int rc =
		json_string_decode(json_string_value(v), json_string_length(v), &b->text, out);
	b->is_short = b->is_short || rc;
	return rc ? err_errno(err, rc, "text") : 0;
}

/* ---- numbers ---- */

bool zarr_integer_text(const char *s, size_t n, struct zarr_integer *out)
{
	size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
	*out = (struct zarr_integer){.negative = n > 0 && s[0] == '-', .fits = true};
	if (i == n)
		return false;
	for (; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		out->fits = out->fits && mul_u64(out->magnitude, 10, &out->magnitude) &&
			    add_u64(out->magnitude, (uint64_t)(s[i] - '0'), &out->magnitude);
	}
	return true;
}

enum zarr_number_kind zarr_number(struct zarr_build *b, const json_t *v, struct zarr_integer *i,
				  double *real)
{
	if (json_is_string(v)) {
		struct json_string text;
		struct json_number number;
		if (zarr_string(b, v, &text, NULL) || !text.literal ||
		    !json_number_text(text.s, text.n, &number))
			return ZARR_NO_NUMBER;
		*real = number.real;
		return zarr_integer_text(text.s, text.n, i) ? ZARR_INTEGER : ZARR_REAL;
	}
	if (json_is_real(v)) {
		*real = json_real_value(v);
		return ZARR_REAL;
	}
	if (!json_is_integer(v))
		return ZARR_NO_NUMBER;
	const int64_t value = json_integer_value(v);
	*i = (struct zarr_integer){
		.negative = value < 0,
		.fits = true,
		.magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
	};
	*real = (double)value;
	return ZARR_INTEGER;
}

bool zarr_count(struct zarr_build *b, const json_t *v, uint64_t *out)
{
	struct zarr_integer i;
	struct json_string text;
	double real;
	switch (zarr_number(b, v, &i, &real)) {
	case ZARR_REAL:
		if (!(real >= 0 && real < 0x1p63) || real != floor(real))
			return false;
		*out = (uint64_t)real;
		return true;
	case ZARR_NO_NUMBER:
		if (!json_is_string(v) || zarr_string(b, v, &text, NULL) || text.literal ||
		    !zarr_integer_text(text.s, text.n, &i))
			return false;
		break;
	case ZARR_INTEGER:
		break;
	}
	*out = i.magnitude;
	return i.fits && i.magnitude <= INT64_MAX && !(i.negative && i.magnitude);
}

int zarr_counts(struct zarr_build *b, const json_t *list, uint32_t *n, const uint64_t **out,
		struct err *err)
{
	char brief[84];
	if (!json_is_array(list))
		return err_set(err, -EIO, "not a list");
	const size_t count = json_array_size(list);
	if (count > DSPACE_MAX_RANK)
		return err_set(err, -EOPNOTSUPP, "rank %zu is over HDF5's limit of %d", count,
			       DSPACE_MAX_RANK);
	uint64_t *numbers = arena_array(b->scratch, count ? count : 1, sizeof(*numbers));
	if (!numbers)
		return err_errno(err, -ENOMEM, "shape");
	for (size_t i = 0; i < count; i++)
		if (!zarr_count(b, json_array_get(list, i), &numbers[i]))
			return err_set(err, -EIO, "%s is not a length",
				       zarr_json_brief(b, json_array_get(list, i), brief));
	*n = (uint32_t)count;
	*out = numbers;
	return 0;
}

/* ---- extension points of v3 ---- */

const char *zarr_extension(const json_t *v, const json_t **configuration)
{
	*configuration = json_object_get(v, "configuration");
	return json_is_string(v) ? json_string_value(v) : json_text_word(v, "name");
}

int zarr_endian(struct zarr_build *b, const json_t *configuration, bool *big, struct err *err)
{
	const json_t *v = json_object_get(configuration, "endian");
	const char *word = json_string_value(v);
	char brief[84];
	*big = word && strcmp(word, "big") == 0;
	if (!v || json_is_null(v) || *big || (word && strcmp(word, "little") == 0))
		return 0;
	return err_set(err, -EIO, "codec 'bytes': endian %s is not known",
		       zarr_json_brief(b, v, brief));
}

/* ---- text ---- */

/* Adds a number as Python's repr() writes it, with the fewest digits that give the same number, and
 * without an exponent from 1e-4 up to 1e16. */
static void add_real(double v, struct str *out)
{
	char text[40], shown[64];
	int digits = 1;
	if (isnan(v) || isinf(v)) {
		str_add(out, isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity");
		return;
	}
	for (; digits < 17; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits - 1, v);
		if (strtod(text, NULL) == v)
			break;
	}
	snprintf(text, sizeof(text), "%.*e", digits - 1, v);
	const int exponent = atoi(strchr(text, 'e') + 1);
	if (exponent < -4 || exponent >= 16)
		snprintf(shown, sizeof(shown), "%s", text);
	else
		snprintf(shown, sizeof(shown), "%.*f",
			 digits - 1 > exponent ? digits - 1 - exponent : 1, v);
	str_add(out, shown);
}

static void add_text(struct zarr_build *b, const char *encoded, size_t n, struct str *out)
{
	struct json_string text;
	if (json_string_decode(encoded, n, &b->text, &text)) {
		out->bad = true;
		return;
	}
	if (text.literal) {
		/* as Python writes a literal after it has read it */
		struct zarr_integer i;
		struct json_number number;
		if (zarr_integer_text(text.s, text.n, &i) && i.fits && i.magnitude == 0)
			str_add(out, "0");
		else if (zarr_integer_text(text.s, text.n, &i))
			str_addn(out, text.s, text.n);
		else if (json_number_text(text.s, text.n, &number))
			add_real(number.real, out);
		return;
	}
	str_addn(out, "\"", 1);
	for (size_t i = 0; i < text.n; i++) {
		static const char escaped[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
		const char c = text.s[i];
		const char *found = c ? strchr(escaped, c) : NULL;
		if (found)
			str_addf(out, "\\%c", letters[found - escaped]);
		else if ((unsigned char)c < 0x20)
			str_addf(out, "\\u%04x", (unsigned int)c);
		else
			str_addn(out, &c, 1);
	}
	str_addn(out, "\"", 1);
}

void zarr_json_text(struct zarr_build *b, const json_t *v, struct str *out)
{
	const char *name, *comma = "";
	size_t n, i;
	json_t *item;
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		str_add(out, "{");
		json_object_keylen_foreach((json_t *)(uintptr_t)v, name, n, item)
		{
			str_add(out, comma);
			add_text(b, name, n, out);
			str_add(out, ":");
			zarr_json_text(b, item, out);
			comma = ",";
		}
		str_add(out, "}");
		break;
	case JSON_ARRAY:
		str_add(out, "[");
		json_array_foreach(v, i, item)
		{
			str_add(out, comma);
			zarr_json_text(b, item, out);
			comma = ",";
		}
		str_add(out, "]");
		break;
	case JSON_STRING:
		add_text(b, json_string_value(v), json_string_length(v), out);
		break;
	case JSON_INTEGER:
		str_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		break;
	case JSON_REAL:
		add_real(json_real_value(v), out);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		str_add(out, json_is_true(v) ? "true" : "false");
		break;
	case JSON_NULL:
		str_add(out, "null");
		break;
	}
}

const char *zarr_json_brief(struct zarr_build *b, const json_t *v, char out[84])
{
	auto_str struct str s = {0};
	if (v)
		zarr_json_text(b, v, &s);
	snprintf(out, 84, "%.80s%s", str_text(&s), s.b.len > 80 ? "..." : "");
	return out;
}
