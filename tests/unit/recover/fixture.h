/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket in a directory, and drafts of it in a journal, as a mount that was killed leaves them.
 */
#ifndef TESTS_UNIT_RECOVER_FIXTURE_H
#define TESTS_UNIT_RECOVER_FIXTURE_H

#include "bucket.h"

#include <errno.h>
#include <glob.h>

#include <hsmount/recover.h>
#include <base/env.h>
#include <drafts/draft_commit.h>
#include <overlay/draft.h>

struct journal_dir {
	struct test_bucket *b;
	char path[80];
	struct env env;
	struct engine_drafts *drafts;
	char text[8192]; /* what list and show have printed */
	struct err err;
};

static inline void journal_begin(struct journal_dir *j, struct test_bucket *b)
{
	*j = (struct journal_dir){.b = b, .env = env_real(NULL, pool_new(0))};
	snprintf(j->path, sizeof(j->path), "%s/../%s-journal", b->dir, strrchr(b->dir, '/') + 1);
	bucket_domain(b, 1, "home/x.h5");
}

static inline void journal_end(struct journal_dir *j)
{
	engine_drafts_close(j->drafts);
	pool_free(j->env.pool);
	nftw(j->path, bucket_rm, 16, FTW_DEPTH | FTW_PHYS);
}

/* The journal of a bucket; "": that of the fixture. */
static inline struct journal *journal_of(struct journal_dir *j, const char *bucket)
{
	struct journal *out;
	struct err err = ERR_INIT;
	const struct journal_settings settings = {.path = j->path,
						  .bucket = bucket[0] ? bucket : j->b->dir};
	if (journal_open(&settings, &j->env, &out, &err))
		fail_msg("%s", err.msg);
	return out;
}

/* Makes a draft with some bytes and, unless it is 0, a mark. Writes its id. */
static inline void journal_add(struct journal_dir *j, const char *bucket,
			       const struct draft_about *about, const char *bytes, uint64_t mark,
			       char id[JOURNAL_ID])
{
	struct journal *journal = journal_of(j, bucket);
	struct draft *d;
	assert_int_equal(draft_create(journal, about, NULL, &d, &j->err), 0);
	assert_int_equal(draft_write(d, 0, bytes, strlen(bytes), NULL), 0);
	if (mark)
		assert_int_equal(draft_mark(d, mark, NULL), 0);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_close(d);
	journal_close(journal);
}

/* Puts text over a file of the draft. */
static inline void journal_damage(struct journal_dir *j, const char *id, const char *file,
				  const char *text)
{
	glob_t found;
	char pattern[200];
	snprintf(pattern, sizeof(pattern), "%s/2/*/%s/%s", j->path, id, file);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	FILE *f = fopen(found.gl_pathv[0], "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	globfree(&found);
}

static inline struct engine_drafts *journal_drafts(struct journal_dir *j)
{
	engine_drafts_close(j->drafts);
	if (engine_drafts_open(j->path, &j->drafts, &j->err))
		fail_msg("%s", j->err.msg);
	return j->drafts;
}

static inline int journal_add_line(void *arg, const char *line)
{
	struct journal_dir *j = arg;
	const size_t n = strlen(j->text);
	snprintf(j->text + n, sizeof(j->text) - n, "%s\n", line);
	return 0;
}

static inline int journal_add_item(void *arg, const struct engine_draft_item *item)
{
	char line[2048];
	snprintf(line, sizeof(line), "%s %s %lld %s %s: %s", item->id,
		 engine_draft_state_name(item->state), item->has_size ? (long long)item->size : -1,
		 item->bucket, item->path, item->why);
	return journal_add_line(arg, line);
}

/* The list as text. */
static inline const char *journal_text(struct journal_dir *j, const char *bucket)
{
	j->text[0] = '\0';
	if (engine_drafts_list(journal_drafts(j), bucket, journal_add_item, j, &j->err))
		fail_msg("%s", j->err.msg);
	return j->text;
}

static inline void journal_add_note(void *arg, const char *line)
{
	journal_add_line(arg, line);
}

static inline struct engine_options journal_options(void)
{
	struct engine_options opt;
	engine_options_init(&opt);
	opt.workers = 0;
	return opt;
}

#endif
