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

struct renames;

/* NULL: out of memory. */
struct renames *renames_new(const struct env *env);
void renames_free(struct renames *r); /* NULL is fine */

/* Numbers a rename that begins. r: NULL, or if there is no memory: the rename is never settled. */
uint64_t renames_begin(struct renames *r, const struct env *env, uint64_t storage);
/* The rename is complete, or has certainly changed nothing. */
void renames_settle(struct renames *r, uint64_t number);
/* Whether a rename of this process is settled. False for renames of other processes. */
bool renames_is_settled(struct renames *r, uint64_t number);
/* Whether this process has not seen this version of a list of names before. 0 is no version. */
bool renames_is_new_list(struct renames *r, uint64_t version);
/* Whether this process has recently renamed the domain of a storage. */
bool renames_knows(struct renames *r, uint64_t storage);

#endif
