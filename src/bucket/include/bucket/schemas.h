/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas that this program knows. Layers below get the table, or one of its rows. */
#ifndef BUCKET_SCHEMAS_H
#define BUCKET_SCHEMAS_H

#include <schema/schema.h>

/* Ends with NULL. New domains get the first one that has a writer: bucket_new_domains(). */
const struct schema_ops *const *schema_all(void);

#endif
