/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that the files of clean/ share.
 *
 *   clean.c            the order: finds, asks, deletes
 *   clean_storages.c   storages without a name
 *   clean_others.c     uploads and temporary files
 *   clean_report.c     what they share
 */
#ifndef CLEAN_CLEAN_H
#define CLEAN_CLEAN_H

#include <hsmount/clean.h>

#include <base/mem.h>
#include <domain/documents.h>
#include <storage/storage_scan.h>

struct engine;

/* A storage that is to be deleted. */
struct clean_storage {
	struct storage storage;
	uint64_t objects, bytes;
};

struct clean {
	struct engine *e;
	const struct engine_clean *opt;
	struct document_place place;
	struct storage_scan *scan;
	int64_t now_ns; /* by the clock of the bucket when the call began; see clean_is_old() */
	struct bytes chosen; /* of struct clean_storage */
	struct bytes others; /* the texts of uploads and temporary files to delete */
	struct engine_clean_totals *out;
	struct engine_clean_totals found;
	int failed; /* the first error of something that was kept */
	/* clean_storages.c: the marks that are kept fresh while names are read. */
	struct storage_deletion *marks;
	size_t nmarks;
};

/* Returns whether something whose newest part has this time may be deleted. */
bool clean_is_old(const struct clean *c, int64_t newest_ns, int64_t now_ns);
/* Returns whether a key begins with the prefix of the options. */
bool clean_is_meant(const struct clean *c, const char *key);
/* Counts an item that was found, and reports it. */
int clean_found(struct clean *c, const struct engine_clean_item *item);
/* Reports why something is kept in the end. If rc is not -EBUSY, it becomes the result. */
void clean_keep(struct clean *c, const char *key, int rc, const struct err *why);

/* Finds the storages. */
int clean_find_storages(struct clean *c, struct err *err);
/* Deletes those that were chosen. */
int clean_delete_storages(struct clean *c, struct err *err);
/* The same for uploads and temporary files. */
int clean_find_others(struct clean *c, struct err *err);
int clean_delete_others(struct clean *c, struct err *err);

#endif
