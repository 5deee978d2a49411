/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records what a commit has put into a domain: the versions and texts of documents, and which
 * objects it has removed. With the record, the next open does not read again what this process has
 * put. The record proves nothing: an open takes a text only if the store shows its version.
 *
 * Texts are kept up to a share of the memory that is free when the record is made, at least
 * DOMAIN_TEXTS_MIN. All memory is charged to the budget.
 *
 * Threads: one at a time. The functions call the budget, so the caller must hold no lock.
 */
#ifndef DOMAIN_PUTS_H
#define DOMAIN_PUTS_H

#include <stdbool.h>
#include <stddef.h>

#include <base/budget.h>
#include <schema/schema.h>

struct domain_puts;

/* Makes an empty record. is_all says that the domain is new, and has no objects besides those that
 * are added. is_few says that it has at most DOMAIN_LISTING keys. Returns NULL if out of memory. */
struct domain_puts *domain_puts_new(struct budget *budget, bool is_all, bool is_few);
void domain_puts_free(struct domain_puts *p); /* the argument may be NULL */
/* Adds an object; the last call for an id counts. etag is "" if it is not known, or NULL if the
 * object is removed, so that nothing leads to it. text has `len` bytes, or is NULL. Fails with
 * -ENOMEM if memory or the budget is short. The caller then frees p without using it, because an
 * open relies on a record to have all new objects. */
int domain_puts_add(struct domain_puts *p, const char *id, const char *etag, const void *text,
		    size_t len);
/* Returns what an earlier commit and a later one have put. Takes over both; either may be NULL.
 * Also returns NULL if out of memory. */
struct domain_puts *domain_puts_join(struct domain_puts *earlier, struct domain_puts *later);

/* Returns how many bytes of texts a domain, or a record of puts, may keep. budget may be NULL. */
uint64_t domain_texts_limit(struct budget *budget);

/* Returns an array for a loader, with each object once. The caller frees the array; its strings and
 * texts are borrowed. Returns NULL if out of memory. */
struct schema_put *domain_puts_list(const struct domain_puts *p, uint32_t *n);
bool domain_puts_is_all(const struct domain_puts *p);
bool domain_puts_is_few(const struct domain_puts *p);

#endif
