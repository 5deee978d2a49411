/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs histories, and checks each with the oracle.
 *
 *   hssim [--seed N] [--histories N] [--steps M] [--history NAME]
 *
 * The i-th history, from 0, has the seed N + i. With an even seed it is random; otherwise it is one
 * of the named histories in turn. A history that fails is printed with its seed and its trace.
 * `--histories 1 --seed N` replays it. If the product crashes, or all its threads wait for each
 * other, the program ends and says which seed it was.
 *
 *   --steps M       operations of a random history; by default 4 to 12. With 48 or more all are
 * random
 *   --history NAME  only this named history, or `random`
 *   --brief         prints only the seeds of histories that fail
 *   --trace         prints each history, and the log of its engines
 *   --minimise      prints a smaller history that fails, too
 *   --again         runs each history twice, and prints the first step that differs, if one does
 *   --seeds FILE    runs the histories of a file, of which each line is a seed, a number of steps
 *                   (0: as by default) and what the seed has found
 *   --list          prints the names of the named histories
 */
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "minimise.h"

struct options {
	uint64_t seed;
	unsigned int histories, steps;
	const char *only; /* of the names */
	const char *seeds;
	bool trace, list, again, brief, smallest;
};

struct totals {
	unsigned int histories, failed, unnamed, undecided, kills, hits, differ;
	unsigned int statuses[4];
	unsigned int done[OP_KINDS]; /* acknowledged operations of each kind */
	unsigned int plain, folders, foreign, acls, mixed, links, stores,
		shared; /* calls for them */
	unsigned int parts, powers, revivals, conflicts, disk_faults, went_on, recovered;
	uint64_t steps;
};

static void usage(void)
{
	fprintf(stderr,
		"usage: hssim [--seed N] [--histories N] [--steps M] [--history NAME] [--brief] "
		"[--trace] [--minimise] [--again] [--seeds FILE] [--list]\n");
	exit(2);
}

static struct options parse(int argc, char **argv)
{
	static const struct option table[] = {{"seed", required_argument, NULL, 's'},
					      {"histories", required_argument, NULL, 'n'},
					      {"steps", required_argument, NULL, 'o'},
					      {"seeds", required_argument, NULL, 'f'},
					      {"history", required_argument, NULL, 'h'},
					      {"trace", no_argument, NULL, 't'},
					      {"list", no_argument, NULL, 'l'},
					      {"again", no_argument, NULL, 'a'},
					      {"brief", no_argument, NULL, 'b'},
					      {"minimise", no_argument, NULL, 'm'},
					      {NULL, 0, NULL, 0}};
	struct options o = {.seed = 1, .histories = 500};
	for (int c; (c = getopt_long(argc, argv, "", table, NULL)) != -1;) {
		if (c == 's')
			o.seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			o.histories = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'o')
			o.steps = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'f')
			o.seeds = optarg;
		else if (c == 'h')
			o.only = optarg;
		else if (c == 't')
			o.trace = true;
		else if (c == 'l')
			o.list = true;
		else if (c == 'a')
			o.again = true;
		else if (c == 'b')
			o.brief = true;
		else if (c == 'm')
			o.smallest = true;
		else
			usage();
	}
	return o;
}

/* False: --history does not name it. */
static bool make(struct history *h, const struct options *o, uint64_t seed)
{
	const bool is_random = seed % 2 == 0 || o->steps >= OPS_MAX;
	const unsigned int script = scripts_of(seed);
	if (!o->only && is_random) {
		history_make(h, seed, o->steps);
		return true;
	}
	if (!o->only) {
		scripts_make(h, script, seed);
		return true;
	}
	for (unsigned int i = 0; i < scripts_count(); i++)
		if (strcmp(scripts_name(i), o->only) == 0) {
			scripts_make(h, i, seed);
			return true;
		}
	if (strcmp(o->only, "random") != 0)
		return false;
	history_make(h, seed, o->steps);
	return true;
}

static void report(const struct history *h, const struct model_result *r)
{
	printf("history %llu (%s) fails:\n%s", (unsigned long long)h->seed, h->name,
	       str_text(&r->faults));
	printf("its service lacks %x%s; its operations:\n", h->lacks,
	       h->repeats ? ", and requests are repeated" : "");
	for (unsigned int i = 0; i < h->nops; i++) {
		char text[256];
		history_text(&h->ops[i], text, sizeof(text));
		printf("  %2u [%llu, %llu] file %llx %s\n", i, (unsigned long long)h->ops[i].begin,
		       (unsigned long long)h->ops[i].end, (unsigned long long)h->ops[i].uid, text);
	}
}

static void count(struct totals *t, const struct history *h, const struct model_result *r)
{
	t->histories++;
	t->failed += r->nfaults > 0;
	t->unnamed += r->unnamed;
	t->undecided += r->undecided;
	if (r->undecided)
		printf("history %llu (%s) is undecided: it has too many orders\n",
		       (unsigned long long)h->seed, h->name);
	t->revivals += h->revivals;
	t->steps += h->world.scheduler.steps;
}

static void count_part(void *ctx, const struct history *h)
{
	struct totals *t = ctx;
	t->parts++;
	t->plain += h->plain->acts;
	t->folders += h->folders->acts;
	t->foreign += h->foreign->acts;
	t->acls += h->acls->acts;
	t->mixed += h->mixed->acts;
	t->links += h->links->acts;
	t->stores += h->stores->acts;
	t->shared += h->shared->acts;
	for (unsigned int i = 0; i < h->engines; i++) {
		t->kills += h->boxes[i].kills;
		t->powers += h->boxes[i].powers;
		t->disk_faults += h->boxes[i].disk_faults;
	}
	for (unsigned int i = 0; i < h->nops; i++) {
		const struct op *op = &h->ops[i];
		t->statuses[op->status]++;
		t->hits += op->hit;
		t->done[op->kind] += op->status == OP_DONE;
		t->conflicts += op->rc == -ESTALE || op->rc == -EBUSY;
		t->went_on += op->goes_on;
		t->recovered += op->was_recovered;
	}
}

static void run_again(const struct options *o, const struct trial *t, struct history *h)
{
	struct model_result r;
	if (o->smallest)
		minimise(t, h);
	disk_hide_log(!o->trace);
	trial_run(t, h, true, &r);
	disk_hide_log(true);
	report(h, &r);
	printf("its trace:\n%s", str_text(&h->world.scheduler.trace));
	model_release(&r);
	history_release(h);
}

/* ---- crashes ---- */

static volatile uint64_t running; /* the seed of the history */

static void say_seed(int signal)
{
	char text[64], digits[24];
	size_t n = 0, k = 0;
	for (uint64_t seed = running; k == 0 || seed; seed /= 10)
		digits[k++] = (char)('0' + seed % 10);
	memcpy(text, "history ", 8);
	n = 8;
	while (k)
		text[n++] = digits[--k];
	memcpy(text + n, " crashes\n", 9);
	disk_hide_log(false);
	if (write(STDERR_FILENO, text, n + 9) < 0)
		_exit(3);
}

static void watch_crashes(void)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	/* The second signal ends the program as usual. */
	struct sigaction action = {.sa_handler = say_seed, .sa_flags = (int)SA_RESETHAND};
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

/* ---- one history ---- */

static uint64_t run(const struct options *o, uint64_t seed, const struct trial *trial,
		    struct totals *t)
{
	struct history *h = calloc(1, sizeof(*h)), *made = malloc(sizeof(*made));
	struct model_result r;
	if (!h || !made)
		abort();
	if (!make(h, o, seed))
		usage();
	*made = *h;
	running = seed;
	struct trial counted = *trial;
	counted.each = count_part;
	counted.ctx = t;
	trial_run(&counted, h, false, &r);
	const uint64_t hash = h->world.scheduler.hash;
	count(t, h, &r);
	const bool fails = r.nfaults;
	model_release(&r);
	history_release(h);
	if ((fails && !o->brief) || o->trace)
		run_again(o, trial, made);
	else if (fails)
		printf("history %llu (%s) fails\n", (unsigned long long)seed, made->name);
	free(h);
	free(made);
	return hash;
}

/* The trace of a history. The caller frees it. */
static char *trace_of(const struct options *o, uint64_t seed, const struct trial *trial)
{
	struct history *h = calloc(1, sizeof(*h));
	struct model_result r;
	if (!h || !make(h, o, seed))
		abort();
	trial_run(trial, h, true, &r);
	char *text = strdup(str_text(&h->world.scheduler.trace));
	model_release(&r);
	history_release(h);
	free(h);
	return text;
}

static void print_difference(const struct options *o, uint64_t seed, const struct trial *trial)
{
	char *a = trace_of(o, seed, trial), *b = trace_of(o, seed, trial);
	size_t line = 0;
	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '\n')
			line = i + 1;
	printf("history %llu differs when it is repeated:\n%.*s\n%.*s\n", (unsigned long long)seed,
	       (int)strcspn(a + line, "\n"), a + line, (int)strcspn(b + line, "\n"), b + line);
	free(a);
	free(b);
}

static void run_seed(const struct options *o, uint64_t seed, const struct trial *trial,
		     struct totals *t)
{
	const uint64_t hash = run(o, seed, trial, t);
	struct totals ignored = {0};
	if (!o->again || hash == run(o, seed, trial, &ignored))
		return;
	t->differ++;
	print_difference(o, seed, trial);
}

/* Lines that begin with # are comments. */
static void run_file(const struct options *o, const struct trial *trial, struct totals *t)
{
	FILE *f = fopen(o->seeds, "r");
	char line[512];
	if (!f) {
		perror(o->seeds);
		exit(2);
	}
	while (fgets(line, sizeof(line), f)) {
		struct options one = *o;
		char *end;
		const uint64_t seed = strtoull(line, &end, 10);
		one.steps = (unsigned int)strtoul(end, NULL, 10);
		if (line[0] != '#')
			run_seed(&one, seed, trial, t);
	}
	fclose(f);
}

/* Only one thread runs at a time, so a second processor only makes it slower to wake the next. */
static void stay_here(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void print_counts(const struct totals *t)
{
	printf("%u parts, %llu steps; %u crashes, %u of them power losses; %u recoveries at once; "
	       "%u calls of disks failed; %u commits (%u of new files, %u of changes), %u "
	       "conflicts, %u failures with which an engine went on; %u renames, %u removals, %u "
	       "reads, %u restarts, %u drops, %u drafts recovered, %u files held, %u imported\n",
	       t->parts, (unsigned long long)t->steps, t->kills, t->powers, t->revivals,
	       t->disk_faults, t->done[OP_CREATE] + t->done[OP_CHANGE], t->done[OP_CREATE],
	       t->done[OP_CHANGE], t->conflicts, t->went_on, t->done[OP_RENAME], t->done[OP_REMOVE],
	       t->done[OP_READ], t->done[OP_RESTART], t->done[OP_DROP], t->recovered,
	       t->done[OP_HOLD], t->done[OP_IMPORT]);
	printf("on names of their own: %u calls for plain objects, %u for folders, %u for a domain "
	       "with a foreign writer, %u for access control lists, %u for domains and plain "
	       "objects, %u for a linked domain, %u for what others have put, %u for files of "
	       "several programs\n",
	       t->plain, t->folders, t->foreign, t->acls, t->mixed, t->links, t->stores, t->shared);
}

int main(int argc, char **argv)
{
	const struct options o = parse(argc, argv);
	stay_here();
	struct totals t = {0};
	size_t n;
	if (o.list) {
		for (unsigned int i = 0; i < scripts_count(); i++)
			printf("%s\n", scripts_name(i));
		return 0;
	}
	/* Without it, libhdf5 does not mark files as open. */
	setenv("HDF5_USE_FILE_LOCKING", "TRUE", 1);
	uint8_t *file = content_template(&n);
	const struct trial trial = {.file = file, .n = n, .log = log_new("sim", LOG_LEVEL_INFO)};
	disk_hide_log(true);
	watch_crashes();
	if (o.seeds)
		run_file(&o, &trial, &t);
	for (unsigned int i = 0; !o.seeds && i < o.histories; i++)
		run_seed(&o, o.seed + i, &trial, &t);
	printf("%u histories, %u failed; operations: %u acknowledged, %u refused, %u uncertain, "
	       "%u without effect; %u faults, %u kills; %u storages without a name; %u undecided\n",
	       t.histories, t.failed, t.statuses[OP_DONE], t.statuses[OP_REFUSED],
	       t.statuses[OP_MAYBE], t.statuses[OP_NONE], t.hits, t.kills, t.unnamed, t.undecided);
	print_counts(&t);
	log_free(trial.log);
	free(file);
	return t.failed || t.differ || t.undecided ? 1 : 0;
}
