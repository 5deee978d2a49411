/* SPDX-License-Identifier: Apache-2.0 */
/* Schema v2: the ops. */
#include "hsds2.h"

#include "object.h"

static const struct schema_ops hsds2 = {
	.name = "hsds2",
	.domain_key = hsds2_domain_key,
	.is_domain_key = hsds2_is_domain_key,
	.is_hidden = hsds2_is_hidden,
	.domain_parse = schema_domain_parse,
	.storage_prefix = hsds2_storage_prefix,
	.object_prefix = hsds2_object_prefix,
	.object_of_prefix = hsds2_object_of_prefix,
	.object_key = hsds2_object_key,
	.key_classify = hsds2_key_classify,
	.info_key = hsds2_info_key,
	.object_parse = schema_object_parse,
	.locate = hsds2_locate,
	.chunk_prefix = hsds2_chunk_prefix,
	.chunk_of_key = hsds2_chunk_of_key,
};

const struct schema_ops *schema_hsds2(void)
{
	return &hsds2;
}
