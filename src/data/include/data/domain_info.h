/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a domain or folder: owner, access control list, times. */
#ifndef DATA_DOMAIN_INFO_H
#define DATA_DOMAIN_INFO_H

#include <stdint.h>

enum domain_perm {
	DOMAIN_PERM_CREATE = 1 << 0,
	DOMAIN_PERM_READ = 1 << 1,
	DOMAIN_PERM_UPDATE = 1 << 2,
	DOMAIN_PERM_DELETE = 1 << 3,
	DOMAIN_PERM_READ_ACL = 1 << 4,
	DOMAIN_PERM_UPDATE_ACL = 1 << 5,
};
enum { DOMAIN_PERMS = 6 };
/* The member of an access control list that grants DOMAIN_PERM 1 << i. */
extern const char *const domain_perm_names[DOMAIN_PERMS];

struct domain_acl {
	const char *user;   /* "default" stands for all users without an entry */
	unsigned int perms; /* enum domain_perm */
};

struct domain_info {
	const char *root;  /* id of the root group; NULL for a folder */
	const char *owner; /* "" if unknown */
	uint32_t nacls;
	struct domain_acl *acls;
	int64_t created_ns, modified_ns; /* since the epoch; 0 if unknown */
	/* If it is not 0, a random number that is written into the document, so that the document
	 * differs from all earlier ones of this name, and no version ever returns. A reader does
	 * not set it. */
	uint64_t nonce;
};

#endif
