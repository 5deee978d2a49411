/* SPDX-License-Identifier: Apache-2.0 */
/* See engine_box.h. */
#include "engine_box.h"

#include "baton.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <drafts/draft_commit.h>
#include "engine/engine_internal.h"
#include "mem_store.h"
#include <hsmount/recover.h>

#include <drafts/drafts.h>

enum {
	TTL_NS = 1000000000,
	SPOOL_SIZE = 64 << 20,
	CACHE_SIZE = 8 << 20,
	PATH_LEN = 512,
	DROPPED_MAX = 16,
	KILL_ONE_IN = 100 /* calls that change files */
};
#define LONG_TTL_NS (30 * UINT64_C(1000000000))

static void __attribute__((noreturn, format(printf, 1, 2))) give_up(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

/* ---- trees of files ---- */

static void path_in(char out[PATH_LEN], const char *dir, const char *name)
{
	if (snprintf(out, PATH_LEN, "%s/%s", dir, name) >= PATH_LEN)
		give_up("%s/%s: too long", dir, name);
}

/* Calls fn for each entry of a directory; ends if it returns true. */
static bool each_entry(const char *path, bool (*fn)(void *ctx, const char *dir, const char *name),
		       void *ctx)
{
	DIR *dir = opendir(path);
	bool ended = false;
	if (!dir)
		return false;
	for (const struct dirent *e; !ended && (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			ended = fn(ctx, path, e->d_name);
	closedir(dir);
	return ended;
}

static bool remove_entry(void *ctx, const char *dir, const char *name)
{
	char path[PATH_LEN];
	path_in(path, dir, name);
	if (unlink(path)) {
		each_entry(path, remove_entry, NULL);
		rmdir(path);
	}
	return false;
}

static bool has_tag(void *ctx, const char *dir, const char *name)
{
	char path[PATH_LEN];
	struct stat st;
	bool found = false;
	path_in(path, dir, name);
	if (lstat(path, &st))
		return false;
	if (S_ISDIR(st.st_mode))
		return each_entry(path, has_tag, ctx);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes = malloc((size_t)st.st_size + 1);
	if (fd >= 0 && bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size)
		found = memmem(bytes, (size_t)st.st_size, ctx, 8);
	free(bytes);
	if (fd >= 0)
		close(fd);
	return found;
}

/* ---- the world ---- */

static const char *parent(void)
{
	return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* Nearly all services know when they have stored an object. */
static int64_t bucket_clock(void)
{
	return (int64_t)(BATON_EPOCH + baton_now());
}

void world_init(struct world *w, const struct world_plan *plan)
{
	const struct baton_plan baton = {.random = rng_derive(plan->seed, 3),
					 .locks = plan->switches ? plan->switches : 1,
					 .spurious = plan->spurious};
	char path[PATH_LEN];
	struct err err = ERR_INIT;
	baton_begin(&baton);
	*w = (struct world){.log = plan->log,
			    .pool = pool_new(0),
			    .workers = plan->workers,
			    .has_clock = plan->seed % 8 != 0,
			    .repeats = plan->repeats,
			    .is_busy = plan->is_busy,
			    .is_s3 = plan->lacks & STORE_MEM_PARTS,
			    .keeps_opens = plan->keeps_opens};
	w->env = env_real(plan->log, w->pool);
	snprintf(w->dir, sizeof(w->dir), "%s/hsmount-sim-XXXXXX", parent());
	if (!mkdtemp(w->dir))
		give_up("%s: it cannot be made", w->dir);
	path_in(path, w->dir, "bucket");
	mkdir(path, 0700);
	path_in(path, w->dir, "bucket/db");
	mkdir(path, 0700);
	w->bucket = store_mem_new(&w->env, &err);
	if (!w->bucket)
		give_up("%s", err.msg);
	if (w->has_clock)
		store_mem_set_clock(w->bucket, bucket_clock);
	scheduler_init(&w->scheduler, w->bucket, rng_derive(plan->seed, 1));
	store_mem_set_lacks(w->bucket, plan->lacks, scheduler_between, &w->scheduler);
}

void world_release(struct world *w)
{
	scheduler_release(&w->scheduler);
	store_free(w->bucket);
	pool_free(w->pool);
	each_entry(w->dir, remove_entry, NULL);
	rmdir(w->dir);
	baton_end();
}

void world_cut_message(const struct world *w, struct err *err)
{
	char *at = strstr(err->msg, w->dir);
	if (at)
		*at = '\0';
}

/* ---- the surroundings of an engine ---- */

static struct store *bucket_of(void *ctx, const struct env *env, struct err *err)
{
	struct box *b = ctx;
	struct store *gate = gate_new(&b->line, env, err);
	if (!gate || !b->world->repeats)
		return gate;
	struct store *retry = store_retry_new(gate, NULL, err);
	if (!retry)
		store_free(gate);
	return retry;
}

static uint64_t now(const struct env *env)
{
	return baton_now();
}

int64_t box_wall(const struct box *b)
{
	return (int64_t)(BATON_EPOCH + baton_now()) + b->wall_ns;
}

static int64_t wall(const struct env *env)
{
	return box_wall(env->ctx);
}

static void sleep_ns(const struct env *env, uint64_t ns)
{
	baton_sleep(ns);
}

static void numbers(const struct env *env, void *bytes, size_t n)
{
	struct box *b = env->ctx;
	uint8_t *p = bytes;
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(rng_next(&b->random) >> 56);
}

/* ---- the life of an engine ---- */

static const char *const call_names[DISK_CALLS] = {"create", "write",  "cut",	 "allocate",
						   "sync",   "rename", "unlink", "mkdir"};

static void journal_of(const struct box *b, unsigned int generation, char path[PATH_LEN])
{
	char name[64];
	snprintf(name, sizeof(name), "journal-%u-%u", b->number, generation);
	path_in(path, b->world->dir, name);
}

/* What an engine is opened with. */
struct settings {
	struct engine_options opt;
	struct engine_world world;
	char bucket[PATH_LEN], journal[PATH_LEN];
};

static void settings_init(struct settings *s, struct box *b)
{
	struct engine_options *opt = &s->opt;
	s->world = (struct engine_world){.store = bucket_of,
					 .now = now,
					 .wall = wall,
					 .sleep = sleep_ns,
					 .random = numbers,
					 .ctx = b};
	engine_options_init(opt);
	path_in(s->bucket, b->world->dir, "bucket");
	journal_of(b, b->generation, s->journal);
	opt->world = &s->world;
	/* A directory knows no versions of files to which domains refer. */
	opt->bucket = b->world->is_s3 ? "s3://bucket" : s->bucket;
	opt->log = b->world->log;
	opt->workers = b->world->workers;
	opt->cache_size = b->cache_size;
	opt->stat = b->stat;
	opt->user = "ann";
	opt->journal_dir = s->journal;
	opt->spool_size = b->spool_size;
	opt->metadata_ttl = (double)b->ttl_ns / 1e9;
	opt->open_ttl = b->world->keeps_opens ? opt->metadata_ttl : 0;
	disk_use(b->disk);
}

/* The requests of a mount that begins have no faults. */
static void open_engine(struct box *b, bool read_only)
{
	const struct line line = b->line;
	struct settings s;
	struct err err = ERR_INIT;
	settings_init(&s, b);
	s.opt.write = !read_only;
	b->line.fault = FAULT_NONE;
	b->line.renewed_ns = 0;
	b->line.dead = false;
	b->opens = true;
	b->lives++;
	b->power_lives &= ~(UINT64_C(1) << b->lives % 64);
	if (engine_open(&s.opt, &b->engine, &err))
		give_up("an engine cannot be opened: %s", err.msg);
	b->opens = false;
	b->line.fault = line.fault;
	b->line.renewed_ns = line.renewed_ns;
	b->line.dead = line.dead;
}

/* The process ends here, or its machine loses its power: this is what the disk has. */
static void killed(void *ctx)
{
	struct box *b = ctx;
	char to[PATH_LEN];
	b->kills++;
	if (!b->disk)
		return;
	journal_of(b, b->generation + 1, to);
	mkdir(to, 0700);
	const bool swept = b->crash_at && b->changes == b->crash_at;
	b->crash_at = swept ? 0 : b->crash_at;
	const bool power = swept || (!b->keeps_power && rng_once_in(&b->crashes, 2));
	b->lost_power |= power;
	b->powers += power;
	b->power_lives |= (uint64_t)power << b->lives % 64;
	disk_crash(b->disk, to, &b->crashes, power ? DISK_POWER : DISK_PROCESS);
}

/* The directory of a bucket has a digest of its path as its name, which is another one in each run.
 */
static const char *shown_name(const char *name)
{
	enum { DIGEST = 64 };
	return strlen(name) == DIGEST ? "of the bucket" : name;
}

/* What a call of the journal returns to its caller instead of doing its work; 0: nothing. */
static ssize_t fail_at_disk(struct box *b, enum disk_call call, const char *name, size_t n)
{
	const struct disk_fault *f = &b->disk_fault;
	/* A mount that begins has no faults. A disk that is full, or has bad blocks, can still
	 * remove. */
	if (!f->at || b->opens || b->line.dead || call == DISK_UNLINK)
		return 0;
	const unsigned int i = ++b->disk_calls;
	if (i < f->at || i >= f->at + f->many)
		return 0;
	const bool half = f->half && i == f->at && call == DISK_WRITE && n > 1;
	scheduler_note(b->line.scheduler, "engine %u:     %s %s; %s: %d", b->number,
		       call_names[call], shown_name(name), half ? "writes a half" : "fails", f->rc);
	b->disk_faults++;
	return half ? (ssize_t)(n / 2) : f->rc;
}

/* Counts a change. Returns whether the machine loses its power at it. */
static bool is_swept(void *ctx)
{
	struct box *b = ctx;
	if (!b->crash_at || b->changes == b->crash_at || b->opens || !b->users || b->line.dead)
		return false;
	return ++b->changes == b->crash_at;
}

static void kill_at_disk(struct box *b, enum disk_call call, const char *name)
{
	scheduler_note(b->line.scheduler, "engine %u:     %s %s; fault: kill", b->number,
		       call_names[call], shown_name(name));
	b->line.hit = true;
	box_kill(b);
}

/* A line that is going to kill its engine may do so in the middle of the work on the journal. The
 * call that is going on has an effect on the old files only. */
static ssize_t at_disk(void *ctx, enum disk_call call, const char *name, size_t n)
{
	struct box *b = ctx;
	struct line *l = &b->line;
	baton_pass();
	const bool dies = l->fault >= FAULT_KILL && !l->hit && !l->dead &&
			  rng_once_in(&b->crashes, KILL_ONE_IN);
	if (!is_swept(b) && !dies)
		return fail_at_disk(b, call, name, n);
	kill_at_disk(b, call, name);
	return 0;
}

/* Some engines have little memory, or a small journal, or always ask the bucket. */
static void choose_budgets(struct box *b, uint64_t seed)
{
	struct rng r = rng_derive(seed, 300 + b->number);
	b->has_little_memory = rng_once_in(&r, 4);
	if (b->has_little_memory)
		b->cache_size = (uint64_t)(1 + rng_below(&r, 8)) << 14;
	if (rng_once_in(&r, 8))
		b->spool_size = (uint64_t)(4 + rng_below(&r, 8)) << 18;
	if (rng_once_in(&r, 4))
		b->ttl_ns = 0;
	if (rng_once_in(&r, 2))
		b->stat = ENGINE_STAT_EXACT;
}

void box_init(struct box *b, struct world *w, unsigned int number, uint64_t seed, bool read_only)
{
	char journal[PATH_LEN];
	*b = (struct box){.world = w, .number = number, .random = rng_derive(seed, 100 + number)};
	b->line = (struct line){.scheduler = &w->scheduler,
				.engine = number,
				.repeats = w->repeats,
				.is_busy = w->is_busy,
				.kill = killed,
				.is_swept = is_swept,
				.ctx = b};
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	b->cache_size = CACHE_SIZE;
	b->spool_size = SPOOL_SIZE;
	b->stat = ENGINE_STAT_ESTIMATE;
	b->ttl_ns = w->keeps_opens ? LONG_TTL_NS : TTL_NS;
	if (!read_only) {
		choose_budgets(b, seed);
		journal_of(b, 0, journal);
		mkdir(journal, 0700);
		b->disk = disk_new(journal);
		disk_set_hook(b->disk, at_disk, b);
		b->crashes = rng_derive(seed, 200 + number);
	}
	open_engine(b, read_only);
}

void box_start(struct box *b)
{
	engine_start(b->engine);
}

void box_enter(struct box *b)
{
	pthread_mutex_lock(&b->lock);
	while (b->is_alone || b->line.dead)
		pthread_cond_wait(&b->changed, &b->lock);
	b->users++;
	pthread_mutex_unlock(&b->lock);
}

void box_leave(struct box *b)
{
	pthread_mutex_lock(&b->lock);
	b->users--;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

void box_enter_alone(struct box *b)
{
	pthread_mutex_lock(&b->lock);
	while (b->is_alone || b->users)
		pthread_cond_wait(&b->changed, &b->lock);
	b->is_alone = true;
	pthread_mutex_unlock(&b->lock);
}

void box_leave_alone(struct box *b)
{
	pthread_mutex_lock(&b->lock);
	b->is_alone = false;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}

static void close_engine(struct box *b)
{
	const uint64_t began = baton_now();
	engine_close(b->engine);
	b->longest_close_ns = max_u64(b->longest_close_ns, baton_now() - began);
}

void box_restart(struct box *b)
{
	b->disk_fault.at = 0;
	close_engine(b);
	b->line.renewed_ns = 0;
	open_engine(b, false);
	box_start(b);
}

struct drop {
	struct engine_drafts *drafts;
	const struct engine_options *opt;
	struct scheduler *scheduler;
	char ids[DROPPED_MAX][32];
	unsigned int n;
};

static int note_waiting(void *arg, const struct engine_draft_item *item)
{
	struct drop *d = arg;
	if (item->state == ENGINE_DRAFT_WAITING && d->n < DROPPED_MAX)
		snprintf(d->ids[d->n++], sizeof(d->ids[0]), "%s", item->id);
	return 0;
}

static void note_line(void *arg, const char *line)
{
	struct drop *d = arg;
	scheduler_note(d->scheduler, "drop: %s", line);
}

void box_set_clock(struct box *b)
{
	const int64_t most_s = b->world->has_clock ? 86400 : 900;
	b->wall_ns =
		((int64_t)(rng_next(&b->random) % (2 * (uint64_t)most_s)) - most_s) * 1000000000;
}

void box_sweep(struct box *b, unsigned int at)
{
	b->crash_at = at;
	b->changes = 0;
}

void box_kill(struct box *b)
{
	if (b->line.dead)
		return;
	b->line.dead = true;
	killed(b);
}

/* Frees a killed engine, and goes on with the journal as it was at the kill. */
static void bury(struct box *b)
{
	char old[PATH_LEN];
	if (b->engine)
		engine_close(b->engine);
	b->engine = NULL;
	journal_of(b, b->generation, old);
	each_entry(old, remove_entry, NULL);
	rmdir(old);
	b->generation++;
	b->disk_fault.at = 0;
	b->line.dead = false;
	b->line.renewed_ns = 0;
	line_arm(&b->line, FAULT_NONE, 0, NULL, false);
	if (b->inspect)
		box_inspect(b, b->inspect, b->inspect_ctx);
}

void box_arm_disk(struct box *b, const struct disk_fault *fault)
{
	b->disk_fault = *fault;
	b->disk_calls = 0;
}

void box_inspect(struct box *b,
		 void (*fn)(struct box *b, const char *journal, const struct engine_options *bucket,
			    void *ctx),
		 void *ctx)
{
	struct settings s;
	settings_init(&s, b);
	fn(b, s.journal, &s.opt, ctx);
}

/* Drops the drafts of the journal, which no engine uses. */
static void drop_drafts(struct box *b, const char *journal, const struct engine_options *bucket,
			void *ctx)
{
	struct err err = ERR_INIT;
	struct drop d = {.opt = bucket, .scheduler = &b->world->scheduler};
	if (engine_drafts_open(journal, &d.drafts, &err))
		return;
	engine_drafts_list(d.drafts, NULL, note_waiting, &d, &err);
	for (unsigned int i = 0; i < d.n; i++)
		if (engine_drafts_drop(d.drafts, d.ids[i], d.opt, note_line, &d, &err))
			note_line(&d, err.msg);
	engine_drafts_close(d.drafts);
}

void box_tidy(struct box *b,
	      void (*fn)(struct box *b, const char *journal, const struct engine_options *bucket,
			 void *ctx),
	      void *ctx)
{
	box_kill(b);
	bury(b);
	box_inspect(b, fn, ctx);
	if (b->line.dead)
		bury(b);
	open_engine(b, false);
	box_start(b);
}

void box_drop(struct box *b)
{
	box_tidy(b, drop_drafts, NULL);
}

void box_revive(struct box *b)
{
	bury(b);
	open_engine(b, false);
	box_start(b);
}

void box_release(struct box *b)
{
	close_engine(b);
	b->engine = NULL;
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
}

void box_begin_again(struct box *b)
{
	box_inspect(b, drop_drafts, NULL);
	/* Hours have passed. */
	disk_settle(b->disk);
	b->was_harmed |= b->powers || b->disk_faults;
	b->lost_power = false;
	b->kills = b->powers = b->disk_faults = 0;
	b->line.faults = b->line.repeated = 0;
	b->line.is_late = false;
	b->longest_close_ns = 0;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	open_engine(b, false);
	box_start(b);
}

void box_free_disk(struct box *b)
{
	disk_free(b->disk);
	b->disk = NULL;
}

bool box_journal_has(const struct box *b, uint64_t tag)
{
	char path[PATH_LEN];
	journal_of(b, b->generation, path);
	return each_entry(path, has_tag, &tag);
}
