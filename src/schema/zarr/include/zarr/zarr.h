/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas of Zarr stores, versions 2 and 3 of the format. Their domains are only read. */
#ifndef ZARR_ZARR_H
#define ZARR_ZARR_H

#include <schema/schema.h>

extern const struct schema_ops zarr2_ops, zarr3_ops;

#endif
