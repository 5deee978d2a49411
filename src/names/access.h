/* SPDX-License-Identifier: Apache-2.0 */
/* Access control lists of domains; names_mode() is in names/names.h. Pure. */
#ifndef NAMES_ACCESS_H
#define NAMES_ACCESS_H

#include <names/names.h>

/* {"user":{"create":true,…},…}, as the document has it. Heap; NULL without memory. */
char *names_acls_json(const struct domain_info *d);

#endif
