/* SPDX-License-Identifier: Apache-2.0 */
/* Siblings of nodes that are visited from left to right, level by level as they come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include <h5/siblings.h>

struct step {
	uint8_t level;
	uint64_t addr, left, right;
};

/* Returns the reason of the failure, or "". */
static const char *walk(const struct step *steps, size_t n, struct err *err)
{
	static struct h5_siblings s;
	memset(&s, 0, sizeof(s));
	*err = (struct err)ERR_INIT;
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = h5_siblings_add(&s, steps[i].level, steps[i].addr, steps[i].left,
				     steps[i].right, err);
	if (!rc)
		rc = h5_siblings_end(&s, err);
	assert_true(rc == 0 || rc == -EIO);
	return rc ? err->msg : "";
}

static void follow_each_other(void **state)
{
	static const struct step good[] = {{1, 8, H5_UNDEF, H5_UNDEF},
					   {0, 16, H5_UNDEF, 24},
					   {0, 24, 16, 32},
					   {0, 32, 24, H5_UNDEF}};
	static const struct {
		size_t at;
		bool right;
		const char *text;
	} bad[] = {{0, false, "node at 8: its left sibling is 0x28 instead of 0xffff"},
		   {0, true, "node at 8: its right sibling is 0x28 instead of 0xffff"},
		   {1, true, "node at 16: its right sibling is 0x28 instead of 0x18"},
		   {2, false, "node at 24: its left sibling is 0x28 instead of 0x10"},
		   {3, true, "node at 32: its right sibling is 0x28 instead of 0xffff"}};
	struct err err;
	assert_string_equal(walk(good, 4, &err), "");
	assert_string_equal(walk(NULL, 0, &err), "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct step steps[4];
		memcpy(steps, good, sizeof(steps));
		*(bad[i].right ? &steps[bad[i].at].right : &steps[bad[i].at].left) = 40;
		const char *found = walk(steps, 4, &err);
		if (!strstr(found, bad[i].text))
			fail_msg("\"%s\" is not in \"%s\"", bad[i].text, found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(follow_each_other)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
