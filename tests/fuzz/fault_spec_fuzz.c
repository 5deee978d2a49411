/* SPDX-License-Identifier: Apache-2.0 */
/* Specifications of injected failures. Properties: accepted rules are within the limits; if a
 * specification is repeated after a comma, the result has its rules twice. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <store/fault_spec.h>

static void check_rule(const struct fault_rule *rule)
{
	assert(rule->what <= FAULT_FLIP && rule->when <= FAULT_PPM);
	assert(rule->when == FAULT_PPM ? rule->n <= 1000000 : rule->n >= 1);
	assert(rule->what != FAULT_FAIL || fault_errno_name((int)rule->value));
	assert(rule->what != FAULT_DELAY || rule->value <= FAULT_MS_MAX);
	assert(memchr(rule->glob, '\0', sizeof(rule->glob)) && !strchr(rule->glob, ','));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *once = calloc(1, size + 1), *twice = malloc(2 * size + 2);
	struct fault_spec *spec = malloc(sizeof(*spec)), *both = malloc(sizeof(*both));
	assert(once && twice && spec && both);
	memcpy(once, data, size);
	stpcpy(stpcpy(stpcpy(twice, once), ","), once);
	if (fault_spec_parse(once, spec, NULL) == 0 && spec->n > 0) {
		const size_t n = spec->n;
		for (size_t i = 0; i < n; i++)
			check_rule(&spec->rules[i]);
		const int rc = fault_spec_parse(twice, both, NULL);
		assert(rc == (2 * n > FAULT_RULES_MAX ? -E2BIG : 0));
		for (size_t i = 0; rc == 0 && i < both->n; i++)
			assert(memcmp(&both->rules[i], &spec->rules[i % n],
				      sizeof(spec->rules[0])) == 0);
		assert(rc || both->n == 2 * n);
	}
	free(once);
	free(twice);
	free(spec);
	free(both);
	return 0;
}
