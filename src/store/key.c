/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Valid keys. The rules are those of the strictest store, a directory: if a valid key is appended
 * to the path of a directory, the result never names anything outside that directory. Pure.
 */
#include <store/store.h>

#include <string.h>

bool store_key_is_marker(const char *key)
{
	char before[STORE_KEY_MAX + 1];
	const size_t n = key ? strnlen(key, STORE_KEY_MAX + 1) : 0;
	if (n < 2 || n > STORE_KEY_MAX || key[n - 1] != '/')
		return false;
	memcpy(before, key, n - 1);
	before[n - 1] = '\0';
	return store_key_ok(before);
}

bool store_key_ok(const char *key)
{
	if (!key || strnlen(key, STORE_KEY_MAX + 1) > STORE_KEY_MAX)
		return false;
	for (;;) {
		const size_t n = strcspn(key, "/");
		/* No component is empty, "." or "..". */
		if (n <= 2 && strspn(key, ".") >= n)
			return false;
		if (key[n] == '\0')
			return true;
		key += n + 1;
	}
}
