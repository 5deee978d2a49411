/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bytes of a file its structures occupy. No two structures of a valid file share a byte.
 *
 * Every decoder of h5/ that reads a structure at an address claims its bytes in f->claims (if that
 * is not NULL) once it has checked the structure. Memory is 16 bytes for each gap-free run, not for
 * each structure. One thread.
 */
#ifndef H5_CLAIMS_H
#define H5_CLAIMS_H

#include <stdint.h>

#include <hsmount/err.h>
#include <base/budget.h>

struct h5_claims;
/* The runs are charged to budget, which may be NULL. Returns NULL if out of memory. */
struct h5_claims *h5_claims_new(struct budget *budget);
void h5_claims_free(struct h5_claims *c);
/* Claims n bytes at an address. what is a constant such as "object header", for messages. An
 * overlap may be found later than by this call: see h5_claims_check(). Repeating exactly the same
 * claim in one walk is an overlap, too. If c is NULL or n is 0, nothing happens. Fails with -EIO if
 * there is an overlap or the bytes end after 2^64, and with -ENOMEM. */
int h5_claim(struct h5_claims *c, uint64_t addr, uint64_t n, const char *what, struct err *err);
/* Finds all overlaps of the claims so far. Fails with -EIO if two structures overlap; the reason
 * says where. */
int h5_claims_check(struct h5_claims *c, struct err *err);

#endif
