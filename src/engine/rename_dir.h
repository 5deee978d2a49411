/* SPDX-License-Identifier: Apache-2.0 */
/* Renames a directory with all that is in it. */
#ifndef ENGINE_RENAME_DIR_H
#define ENGINE_RENAME_DIR_H

#include <hsmount/err.h>

struct engine;
struct names_node;

enum { RENAME_COPIED_MAX = 64 << 20 /* bytes of a plain object that is renamed */ };

/* What change_name.c does with single names: engine_rename() and engine_rmdir(). */
struct rename_dir_calls {
	int (*rename)(struct engine *e, const char *from, const char *to, unsigned int flags,
		      struct err *err);
	int (*rmdir)(struct engine *e, const char *path, struct err *err);
	/* The file of a domain without extension has another name than the domain: "run.h5". After
	 * the domain has got a name, gives its draft that of the file. */
	void (*move_draft)(struct engine *e, const char *from, const char *to);
};

/* Gives the directory `from` the name `to`. The directory that will contain it exists. dir is the
 * node of `from`, and target that of an empty directory which has the new name and is replaced, or
 * NULL. The caller holds both names (draft_table_hold()). Blocks for several requests for each
 * file. Fails with -EXDEV, before anything has changed, if the directory has more entries than
 * engine_options.rename_dir_max in all levels, or something that cannot be renamed in the bucket;
 * and with the errors of engine_rename(). Any thread. */
int engine_rename_dir(struct engine *e, const struct rename_dir_calls *calls, const char *from,
		      const char *to, struct names_node *dir, struct names_node *target,
		      struct err *err);

#endif
