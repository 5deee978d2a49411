/* SPDX-License-Identifier: Apache-2.0 */
/* The inode numbers of the files follow that of the directory, in the order of the table. */
#include "stats_files.h"

#include <errno.h>
#include <string.h>

#include "inodes.h"

static const struct {
	const char *name;
	enum engine_report kind;
} files[] = {
	{"metrics", ENGINE_REPORT_PROMETHEUS},
	{"stats", ENGINE_REPORT_JSON},
};

enum { FILES = sizeof(files) / sizeof(files[0]), SECTOR = 512 };

bool stats_files_own(uint64_t parent, const char *name)
{
	return stats_files_has(parent) ||
	       (parent == INODES_ROOT && strcmp(name, STATS_DIR_NAME) == 0);
}

uint64_t stats_files_look_up(uint64_t parent, const char *name)
{
	if (parent == INODES_ROOT)
		return STATS_DIR_INO;
	for (size_t i = 0; parent == STATS_DIR_INO && i < FILES; i++)
		if (strcmp(name, files[i].name) == 0)
			return STATS_DIR_INO + 1 + i;
	return 0;
}

const char *stats_files_name(size_t i)
{
	return i < FILES ? files[i].name : NULL;
}

int stats_files_text(struct engine *e, uint64_t ino, char **text, size_t *len, struct err *err)
{
	const uint64_t i = ino - STATS_DIR_INO - 1;
	if (i >= FILES)
		return err_set(err, -EISDIR, STATS_DIR_NAME ": is a directory");
	return engine_report(e, files[i].kind, text, len, err);
}

void stats_files_stat(uint64_t ino, size_t len, int64_t now_ns, struct engine_stat *st)
{
	bool is_dir = ino == STATS_DIR_INO;
	*st = (struct engine_stat){
		.kind = is_dir ? ENGINE_DIR : ENGINE_PLAIN,
		.size = is_dir ? 0 : len,
		.size_exact = true,
		.blocks = is_dir ? 0 : (len + SECTOR - 1) / SECTOR,
		.mtime_ns = now_ns,
		.ctime_ns = now_ns,
		.mode = is_dir ? 0555 : 0444,
	};
}
