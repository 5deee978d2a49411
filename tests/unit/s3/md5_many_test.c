/* SPDX-License-Identifier: Apache-2.0 */
/* Every width that this processor has agrees with OpenSSL, whatever the length and the lanes. */
#include "store_fixture.h"

#include <aws/digest.h>
#include <base/hex.h>

#include "s3/md5_many.h"

/* Around one block, around where the length no longer fits, and several blocks. */
static const size_t lengths[] = {0, 1, 3, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 5000};

static void expect_same(const struct md5_kernel *k, uint8_t **bodies, unsigned int n, size_t len)
{
	const void *row[MD5_LANES_MAX];
	uint8_t out[MD5_LANES_MAX][MD5_SIZE];
	for (unsigned int i = 0; i < n; i++)
		row[i] = bodies[i];
	md5_many(k, row, n, len, out);
	for (unsigned int i = 0; i < n; i++) {
		char want[MD5_HEX], got[MD5_HEX];
		assert_int_equal(digest_md5(&(struct piece){bodies[i], len}, 1, want), 0);
		hex_encode(out[i], MD5_SIZE, got);
		assert_string_equal(got, want);
	}
}

static void all_widths_agree(void **state)
{
	for (size_t t = 0; t < sizeof(lengths) / sizeof(lengths[0]); t++) {
		const size_t len = lengths[t];
		uint8_t *bodies[MD5_LANES_MAX];
		/* Blocks of exactly their size, so that the sanitizer sees a byte too many. */
		for (unsigned int l = 0; l < MD5_LANES_MAX; l++) {
			bodies[l] = malloc(len ? len : 1);
			assert_non_null(bodies[l]);
			for (size_t i = 0; i < len; i++)
				bodies[l][i] = (uint8_t)(i * 37 + (i >> 7) + l * 11);
		}
		for (size_t i = 0; i < md5_nkernels; i++)
			for (unsigned int n = 1;
			     md5_kernels[i].usable() && n <= md5_kernels[i].lanes; n++)
				expect_same(&md5_kernels[i], bodies, n, len);
		for (unsigned int l = 0; l < MD5_LANES_MAX; l++)
			free(bodies[l]);
	}
}

/* RFC 1321, appendix A.5. */
static void vectors_of_the_rfc(void **state)
{
	static const struct {
		const char *text, *md5;
	} cases[] = {
		{"", "d41d8cd98f00b204e9800998ecf8427e"},
		{"abc", "900150983cd24fb0d6963f7d28e17f72"},
		{"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
		{"1234567890123456789012345678901234567890123456789012345678901234567890"
		 "1234567890",
		 "57edf4a22be3c955ac49da2e2107b67a"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const void *body = cases[i].text;
		uint8_t out[1][MD5_SIZE];
		char hex[MD5_HEX];
		md5_many(md5_widest(), &body, 1, strlen(cases[i].text), out);
		hex_encode(out[0], MD5_SIZE, hex);
		assert_string_equal(hex, cases[i].md5);
	}
}

static void the_last_kernel_serves_everywhere(void **state)
{
	assert_true(md5_kernels[md5_nkernels - 1].usable());
	for (size_t i = 0; i < md5_nkernels; i++)
		assert_true(md5_kernels[i].lanes <= MD5_LANES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_widths_agree),
		cmocka_unit_test(vectors_of_the_rfc),
		cmocka_unit_test(the_last_kernel_serves_everywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
