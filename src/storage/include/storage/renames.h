/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process knows about its own renames: which of them are settled, so that a later change of
 * the same names need not ask the bucket whether a rename is to be finished. Any thread.
 */
#ifndef STORAGE_RENAMES_H
#define STORAGE_RENAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <base/env.h>
#include <schema/storage_id.h>

struct renames;

/* Returns NULL if out of memory. */
struct renames *renames_new(const struct env *env);
void renames_free(struct renames *r); /* r may be NULL */

/* Returns the number of a rename that begins. If r is NULL, or there is no memory, the rename never
 * counts as settled. */
uint64_t renames_begin(struct renames *r, const struct env *env, const struct storage *storage);
/* To be called when the rename is complete, or has certainly changed nothing. r may be NULL. */
void renames_settle(struct renames *r, uint64_t number);
/* Returns whether a rename of this process is settled. Renames of other processes never are. */
bool renames_is_settled(struct renames *r, uint64_t number);
/* Returns whether a rename that began so long ago, or was withdrawn, may still give its new name.
 */
bool renames_may_give(struct renames *r, uint64_t number, int64_t age_ns);
/* Returns whether this process sees this version of a list of names for the first time. 0 is no
 * version. */
bool renames_is_new_list(struct renames *r, uint64_t version);
/* Returns whether this process has recently renamed the domain of a storage. */
bool renames_knows(struct renames *r, const struct storage *storage);

#endif
