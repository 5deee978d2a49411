/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a listing as a set of hashes: see key_set.c. */
#ifndef STORE_KEY_SET_H
#define STORE_KEY_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/budget.h>
#include <hsmount/err.h>
#include <store/store.h>

struct key_set;

/* Lists all keys below a prefix. *out becomes NULL if there are none. cancelled is NULL, or as in
 * struct store_request. */
int key_set_list(struct store *store, struct budget *budget, const char *prefix,
		 const atomic_bool *cancelled, struct key_set **out, struct err *err);
void key_set_free(struct key_set *set); /* set may be NULL */
/* Returns true if a key was listed, and sets *size to the size of its object. Two of 2^64 keys may
 * be confused. If set is NULL, it has no keys. */
bool key_set_find(const struct key_set *set, const char *key, uint64_t *size);

#endif
