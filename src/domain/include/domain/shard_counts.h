/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the searches for chunks in the shards of a domain. */
#ifndef DOMAIN_SHARD_COUNTS_H
#define DOMAIN_SHARD_COUNTS_H

#include <stdint.h>

struct domain;

/* Gets how many searches have found an index in memory, and how many had to wait for one. A chunk
 * in nested shards takes a search in each of them. Any thread. */
void domain_shard_counts(const struct domain *d, uint64_t *hits, uint64_t *misses);

#endif
