/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies beneath a prefix, and what is known of one that nobody may look into. A prefix is
 * closed when it cannot be listed although the directory that it is in can: then the fault is its
 * own, and that its directory lists it proves that it is there. Any thread.
 */
#ifndef ENGINE_BENEATH_H
#define ENGINE_BENEATH_H

#include <stddef.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>
#include <store/store.h>

#include "doc.h"

struct engine;

enum { BENEATH_LISTED_MAX = 1 << 20 /* entries of a directory; one with more cannot be listed */ };

enum beneath {
	BENEATH_NOTHING, /* also: no key can begin like this */
	BENEATH_DOC,	 /* the prefix's own document */
	BENEATH_MORE,
};

/* From the listing beneath a prefix that was limited to one item. code: of the listing. An enum
 * beneath, or what kept the store from answering. */
int beneath_of_page(const struct engine *e, int code, const struct store_page *page);

struct beneath_ask {
	const char *path; /* borrowed */
	int found;	  /* as of beneath_of_page() */
	char *why;	  /* heap; when found is an error */
};
/* Looks beneath n paths side by side. -ENOMEM; all else is in the asks, whose texts are the
 * caller's either way. */
int beneath_look(struct engine *e, struct beneath_ask *asks, size_t n);

/* 0 when the store lists this directory now: what failed within is not the whole store's fault. */
int beneath_dir_answers(struct engine *e, const char *dir, struct err *err);

enum listed { LISTED_NOT, LISTED_OBJECT, LISTED_PREFIX };
/* What the directory of a path lists under its name. An enum listed, or why it is not listed. */
int beneath_is_listed(struct engine *e, const char *path, struct err *err);

/* What a closed prefix is shown as: its document may tell, else its name. */
enum engine_kind beneath_closed_kind(const char *path, const struct doc *doc);

#endif
