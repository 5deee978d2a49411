/* SPDX-License-Identifier: Apache-2.0 */
/* Fault language: what is accepted has a shortest form, which parses to the same rules and is its
 * own shortest form. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <store/fault_spec.h>

enum { TEXT_MAX = FAULT_RULES_MAX * (FAULT_GLOB_MAX + 64) };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fault_spec empty;
	char *text = malloc(size + 1), *once = malloc(TEXT_MAX), *twice = malloc(TEXT_MAX);
	struct fault_spec *spec = malloc(sizeof(*spec)), *again = malloc(sizeof(*again));
	assert(text && once && twice && spec && again);
	memcpy(text, data, size);
	text[size] = '\0';
	*spec = *again = empty;
	if (fault_spec_parse(text, spec, NULL) == 0) {
		assert(fault_spec_format(spec, once, TEXT_MAX) == 0);
		assert(strlen(once) <= strlen(text));
		assert(fault_spec_parse(once, again, NULL) == 0);
		assert(memcmp(spec, again, sizeof(*spec)) == 0);
		assert(fault_spec_format(again, twice, TEXT_MAX) == 0);
		assert(strcmp(once, twice) == 0);
	}
	free(text);
	free(once);
	free(twice);
	free(spec);
	free(again);
	return 0;
}
