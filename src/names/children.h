/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies beneath a prefix, and what the listing of its directory shows. A prefix is closed when
 * it cannot be listed although the directory that it is in can: then the fault is its own, and that
 * its directory lists it proves that it is there. Any thread.
 */
#ifndef NAMES_CHILDREN_H
#define NAMES_CHILDREN_H

#include "names_internal.h"

enum { CHILDREN_LISTED_MAX = 1 << 20 /* entries of a directory; one with more cannot be listed */ };

/* Makes req the listing beneath a prefix that tells what names_children_found() returns. */
void names_children_ask(const char *path, struct store_request *req);
/* An enum names_children, or what kept the store from answering. */
int names_children_found(const struct names *ns, const struct store_request *req);

struct names_children_of {
	const char *path; /* borrowed */
	int found;	  /* as of names_children_found() */
	char *why;	  /* heap; when found is an error */
};
/* Looks beneath n paths side by side. -ENOMEM; all else is in the asks, whose texts are the
 * caller's either way. */
int names_children_look(struct names *ns, struct names_children_of *asks, size_t n);

/* 0 when the store lists this directory now: what failed within is not the whole store's fault. */
int names_dir_answers(struct names *ns, const char *dir, struct err *err);

enum names_listed { LISTED_NOT, LISTED_OBJECT, LISTED_PREFIX };
/* What the directory of a path lists under its name. An enum names_listed, or why it is not listed.
 */
int names_is_listed(struct names *ns, const char *path, struct err *err);

#endif
