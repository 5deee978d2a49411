/* SPDX-License-Identifier: Apache-2.0 */
/* See bucket/schemas.h. */
#include <bucket/schemas.h>

#include <hsds/hsds.h>
#include <zarr/zarr.h>

const struct schema_ops *const *schema_all(void)
{
	static const struct schema_ops *const all[] = {&hsds2_ops, &hsds1_ops, &zarr3_ops,
						       &zarr2_ops, NULL};
	return all;
}
