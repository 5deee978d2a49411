/* SPDX-License-Identifier: Apache-2.0 */
/* The two schemas of HSDS: v1, in which the service stored domains until 2018, and v2. */
#ifndef HSDS_HSDS_H
#define HSDS_HSDS_H

#include <schema/schema.h>

extern const struct schema_ops hsds1_ops, hsds2_ops;

#endif
