/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that the values of one object may take, however they are encoded. Pure. */
#include "parse.h"

int schema_spend(struct schema_ctx *ctx, uint64_t n, struct err *err)
{
	if (n > ctx->budget)
		return err_set(err, -EIO, "values of the object over %d bytes", SCHEMA_VALUES_MAX);
	ctx->budget -= n;
	return 0;
}
