/* SPDX-License-Identifier: Apache-2.0 */
/* For each test a new small domain in a store that counts requests. */
#ifndef TESTS_DOMAIN_FIXTURE_H
#define TESTS_DOMAIN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include <domain/domain.h>
#include <schema/schema.h>
#include <store/store.h>

#include "small_domain.h"

struct fixture {
	struct env env;
	struct store *store;
	struct domain *domain; /* may be NULL; released after the test */
};

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->env = env_real(NULL, pool_new(0));
	f->store = store_count_new(small_domain_new(&f->env), NULL);
	*state = f;
	return f->store ? 0 : -1;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	domain_unref(f->domain);
	store_free(f->store);
	pool_free(f->env.pool);
	free(f);
	return 0;
}

#endif
