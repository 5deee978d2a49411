/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: +0 u8: bit 0 lenient, bits 1-2 the path of the object that is kept apart; +1 the text.
 *
 * The lenient reader accepts what the strict one accepts, with the same values, except that -0
 * keeps its sign. A document of which an object is kept apart is accepted if it is accepted as a
 * whole. The members of that object, read one by one, and the rest are those of the whole.
 */
#include <stdbool.h>
#include <string.h>

#include <json/reader.h>

#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[][JSON_TEXT_PATH] = {{NULL}, {"a"}, {"a", "b"}, {"links"}};
enum { PATHS = sizeof(paths) / sizeof(paths[0]) };

static bool same(const json_t *strict, const json_t *lenient)
{
	static const char negative_zero[] = "\x10n-0";
	const char *text = json_string_value(lenient);
	if (text && strcmp(text, negative_zero) == 0 && json_is_integer(strict))
		return json_integer_value(strict) == 0;
	if (json_typeof(strict) != json_typeof(lenient))
		return false;
	if (json_is_object(strict)) {
		const char *name;
		json_t *value;
		bool equal = json_object_size(strict) == json_object_size(lenient);
		json_object_foreach((json_t *)(uintptr_t)strict, name, value)
		{
			const json_t *other = json_object_get(lenient, name);
			equal = equal && other && same(value, other);
		}
		return equal;
	}
	if (json_is_array(strict)) {
		bool equal = json_array_size(strict) == json_array_size(lenient);
		for (size_t i = 0; equal && i < json_array_size(strict); i++)
			equal = same(json_array_get(strict, i), json_array_get(lenient, i));
		return equal;
	}
	return json_equal(strict, lenient);
}

static void check_lenient(const uint8_t *text, size_t n)
{
	auto_json json_t *strict = NULL, *lenient = NULL;
	const int rc = json_text_load(text, n, &strict, NULL);
	const int lenient_rc = json_text_load_lenient(text, n, &lenient, NULL);
	require(rc == 0 || !strict);
	require(lenient_rc == 0 || !lenient);
	require(rc != 0 || (lenient_rc == 0 && same(strict, lenient)));
}

/* The object that the path leads to and the one that contains it, in a whole document. */
static json_t *find(json_t *whole, const char *const path[], json_t **parent, const char **name)
{
	*parent = path[0] && path[1] ? json_object_get(whole, path[0]) : whole;
	*name = path[0] && path[1] ? path[1] : path[0];
	json_t *found = *name ? json_object_get(*parent, *name) : NULL;
	return json_is_object(found) ? found : NULL;
}

/* seen: for each name, 1 if the last value of the name is that of the whole document. */
static int compare_members(const struct json_text *json, const json_t *object, json_t *seen)
{
	struct json_text_members m;
	int rc;
	json_text_members_begin(&m, json);
	while ((rc = json_text_next(&m, NULL)) > 0) {
		const char *name = json_string_value(m.name);
		const json_t *value = json_object_get(object, name);
		require(!object || value);
		if (object)
			json_integer_set(json_object_get(seen, name), json_equal(m.value, value));
	}
	json_text_members_end(&m);
	return rc;
}

static void check_apart(const uint8_t *text, size_t n, const struct json_text_how *how)
{
	struct json_text json, all;
	struct json_text_area area;
	const struct json_text_how as_whole = {.lenient = how->lenient};
	const char *member, *name;
	json_t *parent, *value;
	const int rc = json_text_load_as(text, n, &as_whole, &all, NULL);
	json_t *object = find(all.doc, how->path, &parent, &member);
	auto_json json_t *seen = json_object();
	json_object_foreach(object, name, value) json_object_set_new(seen, name, json_integer(0));
	json_text_area_begin(&area);
	int apart_rc = json_text_load_as(text, n, how, &json, NULL);
	require(apart_rc == 0 || (!json.doc && !json.apart && !json.rewritten.data));
	if (rc == 0)
		require(apart_rc == 0 && (json.apart != NULL) == (object != NULL));
	if (json.apart)
		apart_rc = compare_members(&json, object, seen);
	require(rc == apart_rc);
	if (object)
		json_object_del(parent, member);
	require(rc != 0 || json_equal(json.doc, all.doc));
	bytes_release(&json.rewritten);
	json_text_area_end(&area);
	json_object_foreach(seen, name, value) require(json_integer_value(value) == 1);
	bytes_release(&all.rewritten);
	json_decref(all.doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const char *const *path = paths[data[0] / 2 % PATHS];
	const struct json_text_how how = {.lenient = data[0] & 1, .path = {path[0], path[1]}};
	check_lenient(data + 1, size - 1);
	check_apart(data + 1, size - 1, &how);
	return 0;
}
