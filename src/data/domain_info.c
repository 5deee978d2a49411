/* SPDX-License-Identifier: Apache-2.0 */
#include <data/domain_info.h>

_Static_assert(DOMAIN_PERM_UPDATE_ACL == 1 << (DOMAIN_PERMS - 1), "each bit has a name");

const char *const domain_perm_names[DOMAIN_PERMS] = {"create", "read",	  "update",
						     "delete", "readACL", "updateACL"};
