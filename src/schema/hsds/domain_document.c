/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of domains and folders, which have the same form in schema v1 and v2. Pure. */
#include "emit_document.h"
#include "hsds2.h"

const struct schema_documents hsds_documents = {
	.key = hsds2_domain_key,
	.emit = schema_emit_domain,
	.edit_acls = schema_acls_edit,
};
