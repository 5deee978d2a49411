/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a commit has put into a domain: the versions and texts of documents, and which objects it
 * has removed. The next open needs them to read nothing again that this process has put. They prove
 * nothing: an open takes a text only if the store shows its version.
 *
 * At most DOMAIN_KEPT_MAX bytes of texts are kept. All memory is charged to the budget.
 *
 * Threads: one at a time. The budget is called, so the caller holds no lock.
 */
#ifndef DOMAIN_PUTS_H
#define DOMAIN_PUTS_H

#include <stdbool.h>
#include <stddef.h>

#include <base/budget.h>
#include <schema/schema.h>

struct domain_puts;

/* is_all: the domain is new, and has no other objects. is_few: it has at most DOMAIN_LISTING keys.
 * Returns NULL if out of memory. */
struct domain_puts *domain_puts_new(struct budget *budget, bool is_all, bool is_few);
void domain_puts_free(struct domain_puts *p); /* the argument may be NULL */
/* Adds an object; the last call for an id counts. etag: "" if not known; NULL if the object is
 * removed, so that nothing leads to it. text: `len` bytes, or NULL. -ENOMEM if the object is not
 * added; then p is of no use, because an open relies on it that all new objects are in it. */
int domain_puts_add(struct domain_puts *p, const char *id, const char *etag, const void *text,
		    size_t len);
/* What an earlier commit and a later one have put. Takes over both; either may be NULL. NULL: also
 * if there is no memory. */
struct domain_puts *domain_puts_join(struct domain_puts *earlier, struct domain_puts *later);

/* For a loader: each object once. The caller frees the array; its strings and texts are borrowed.
 * Returns NULL if out of memory. */
struct schema_put *domain_puts_list(const struct domain_puts *p, uint32_t *n);
bool domain_puts_is_all(const struct domain_puts *p);
bool domain_puts_is_few(const struct domain_puts *p);

#endif
