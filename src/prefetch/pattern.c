/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognising progressions, several at a time, in what looks like noise.
 *
 * A touch is held against what the tracks of its dataset expect, and what they have just passed.
 * One that nobody expects is kept among the loose ones, and with those it may make something new.
 * In this order:
 *  - a run of a track that is longer or shorter than those before, or began earlier (loop_nest.h);
 *  - the next run of a track: a loose chunk and this one are one stride of it apart, and the track
 *    has missed its turn. The track learns its next level from the two starts of runs;
 *  - chunks 0 and 1: a reader that begins so is taken at its word;
 *  - three chunks in progression, with whatever else of it is loose;
 *  - after the end of a track, a simple way to the start of its next run: a guess;
 *  - where nothing is known yet, two chunks that differ by a simple step: a guess.
 * A single chunk in between (the kernel reads ahead, a thread looks something up) changes nothing:
 * a track breaks when it has missed more turns than is usual for it.
 *
 * What a reader of random chunks would be seen to do by chance is not believed. Three chunks have a
 * chance: the differences that are as simple as theirs or simpler, times the combinations of loose
 * chunks that are as recent, over the square of the chunks in the dataset. So a walk from one chunk
 * to the next is believed early, and three chunks that are far apart in a small dataset are not.
 * What happens to a track afterwards makes its chance smaller or greater (worth()). Guesses are
 * bought: after two in vain there are none until one is right.
 */
#include "pattern.h"

#include <stddef.h>
#include <string.h>

#include <base/mem.h>

enum {
	LOOSE_OF_DATASET = 24, /* loose chunks that a touch is combined with */
	LOOSE_GUESS = 3,       /* and for a guess */
	LOOSE_START = 8,       /* and as start of a run */
	IDLE_MAX = 64,	       /* a track without a step for so long has ended */
	GUESSES_LOST = 2,
	TURNS_COST = 8,	  /* in chance: a run that turns round was not understood */
	OUT_OF_ORDER = 6, /* as many ways to come out of order are possible, and not as likely */
};

static const double CHANCE_MIN = 2e-5; /* what is lost by that many surprises */
static const double CHANCE_BELIEVED = 1.0 / 1000;
static const double CHANCE_GUESS = 1.0 / 100;
static const double CHANCE_WATCHED = 1.0 / 16;
static const double CHANCE_WASTED = 1.0 / 100;

/* A touch and what is near it. */
struct touch {
	struct pattern *p;
	const struct chunk_grid *g;
	uint64_t number;
	double chunks; /* of the grid */
	uint32_t dataset;
	unsigned int ntracks; /* of the dataset */
	unsigned int n;
	uint64_t loose[LOOSE_OF_DATASET]; /* of the dataset, newest first */
};

void pattern_init(struct pattern *p)
{
	*p = (struct pattern){0};
}

static bool is_of(const struct track *t, uint32_t dataset)
{
	return t->used && t->dataset == dataset;
}

static bool believed(const struct track *t)
{
	return t->guess || t->chance < CHANCE_BELIEVED;
}

static void loose_remove(struct pattern *p, uint32_t dataset, uint64_t number)
{
	for (uint32_t i = 0; i < p->nloose; i++) {
		if (p->loose[i].dataset != dataset || p->loose[i].number != number)
			continue;
		p->nloose--;
		memmove(&p->loose[i], &p->loose[i + 1], (p->nloose - i) * sizeof(p->loose[0]));
		return;
	}
}

static void loose_add(struct pattern *p, uint32_t dataset, uint64_t number)
{
	p->nloose += p->nloose < PATTERN_LOOSE;
	memmove(&p->loose[1], &p->loose[0], (p->nloose - 1) * sizeof(p->loose[0]));
	p->loose[0] = (struct loose){number, dataset};
}

static void look_around(struct touch *x)
{
	const struct pattern *p = x->p;
	x->n = x->ntracks = 0;
	for (uint32_t i = 0; i < p->nloose && x->n < LOOSE_OF_DATASET; i++)
		if (p->loose[i].dataset == x->dataset)
			x->loose[x->n++] = p->loose[i].number;
	for (size_t i = 0; i < PATTERN_TRACKS; i++)
		x->ntracks += is_of(&p->tracks[i], x->dataset);
}

static bool is_loose(const struct touch *x, uint64_t number)
{
	for (unsigned int i = 0; i < x->n; i++)
		if (x->loose[i] == number)
			return true;
	return false;
}

/* What a new track replaces: nothing, what was not believed, or what is not used for longest. */
static struct track *victim(struct touch *x)
{
	const bool full = x->ntracks >= PATTERN_TRACKS_OF_DATASET;
	struct track *best = NULL;
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (full && !is_of(t, x->dataset))
			continue;
		if (!t->used)
			return t;
		if (!best ||
		    (believed(best) != believed(t) ? believed(best) : t->used < best->used))
			best = t;
	}
	return best;
}

/* The other tracks of the dataset have missed one; those that miss all end. */
static void count_miss(struct touch *x, const struct track *but)
{
	x->p->clock++;
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (t != but && is_of(t, x->dataset) && ++t->misses > IDLE_MAX)
			t->used = 0;
	}
}

/* Guesses at what the track explains. */
static void drop_guesses(struct touch *x, const struct track *by)
{
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (t == by || !is_of(t, x->dataset) || !t->guess)
			continue;
		if (t->nest.newest == by->nest.newest ||
		    loop_nest_find(&by->nest, x->g, t->nest.newest) != 0)
			t->used = 0;
	}
}

/* Takes from the loose chunks those that are the track's: touched before it was known. */
static void absorb(struct touch *x, struct track *t)
{
	for (unsigned int i = 0; i < x->n; i++) {
		const int at = loop_nest_find(&t->nest, x->g, x->loose[i]);
		if (at == 0 && t->nest.newest != x->loose[i])
			continue;
		if (at > 0)
			loop_nest_step(&t->nest, x->g, (unsigned int)at);
		loose_remove(x->p, x->dataset, x->loose[i]);
	}
	drop_guesses(x, t);
}

static void has_moved(struct touch *x, struct track *t)
{
	count_miss(x, t);
	if (t->guess)
		x->p->guesses_lost = 0;
	t->rhythm = t->misses > t->rhythm / 2 ? t->misses : t->rhythm / 2;
	t->misses = 0;
	t->used = x->p->clock;
	t->broken = false;
	t->guess = false;
}

static enum pattern_event event_of(struct track *t, struct track **track)
{
	if (!believed(t))
		return PATTERN_RANDOM;
	*track = t;
	return t->guess ? PATTERN_GUESS : PATTERN_FOLLOWS;
}

static void set_chance(struct track *t, double chance)
{
	t->chance = chance < CHANCE_MIN ? CHANCE_MIN : chance > 1 ? 1 : chance;
}

/*
 * What an event is worth whose probability is p under chance. The factors' inverses have a mean of
 * less than one under chance, so that a sequence of lucky events does not make a belief: the worth
 * of common ones is negative.
 */
static double worth(double p)
{
	return p < 1.0 / 512 ? 1.0 / 64 : p < 1.0 / 16 ? 1.0 / 6 : 2;
}

/* The touches at which something may have happened since a track's last step, if that is in its
 * rhythm. */
static double occasions(const struct track *t)
{
	return 1 + 2.0 * (t->misses > t->rhythm ? t->misses - t->rhythm : t->rhythm - t->misses);
}

static void advance(struct touch *x, struct track *t, unsigned int steps)
{
	const bool young = t->nest.levels[0].seen < 2;
	const double p = occasions(t) * steps / x->chunks;
	double by = t->guess ? p : worth(p); /* a guess is the track's first two of three chunks */
	/* In turn it is at least no evidence against the track, in however small a dataset. */
	if (steps == 1 && t->misses <= t->rhythm && by > 1)
		by = 1;
	set_chance(t, t->chance * by);
	loop_nest_step(&t->nest, x->g, steps);
	has_moved(x, t);
	if (young)
		absorb(x, t);
}

/* The better of two places that a touch may have: expected soon, else passed lately; and rather in
 * a track that is believed. */
static bool better(const struct track *a, int at_a, const struct track *b, int at_b)
{
	if (!b || believed(a) != believed(b))
		return !b || believed(a);
	if ((at_a > 0) != (at_b > 0))
		return at_a > 0;
	if (at_a == at_b)
		return occasions(a) < occasions(b);
	return at_a > 0 ? at_a < at_b : at_a > at_b;
}

static bool is_bend(struct touch *x, struct track **track, enum pattern_event *event)
{
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (!is_of(t, x->dataset) || !believed(t) ||
		    !loop_nest_bend(&t->nest, x->g, x->number))
			continue;
		set_chance(t, t->chance * worth(occasions(t) * LOOP_NEST_LEVELS / x->chunks));
		has_moved(x, t);
		*event = event_of(t, track);
		return true;
	}
	return false;
}

static bool is_early(struct touch *x, struct track **track, enum pattern_event *event)
{
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (!is_of(t, x->dataset) || !loop_nest_widen(&t->nest, x->g, x->number))
			continue;
		*event = PATTERN_AGAIN;
		if (t->nest.newest == x->number) {
			set_chance(t, t->chance * TURNS_COST);
			has_moved(x, t);
			*event = event_of(t, track);
		} else if (believed(t)) {
			*track = t;
		}
		return true;
	}
	return false;
}

static bool has_ended(const struct touch *x, const struct track *t)
{
	uint64_t next = 0;
	return !loop_nest_expect(&t->nest, x->g, 0, &next);
}

/* A run from chunk `start`, of which `other` is a later one. */
static void restart(struct touch *x, struct track *t, uint64_t start, uint64_t other)
{
	loop_nest_restart(&t->nest, x->g, start);
	const int at = loop_nest_find(&t->nest, x->g, other);
	if (at > 0)
		loop_nest_step(&t->nest, x->g, (unsigned int)at);
	else if (!loop_nest_bend(&t->nest, x->g, other))
		loop_nest_init(&t->nest, x->g, start, other);
	const uint32_t rhythm = t->rhythm; /* the way to the next run is none */
	has_moved(x, t);
	t->rhythm = rhythm;
	absorb(x, t);
}

static struct track *birth(struct touch *x, uint64_t a, uint64_t b, double chance)
{
	struct track *t = victim(x);
	*t = (struct track){.dataset = x->dataset, .used = 1};
	set_chance(t, chance);
	loop_nest_init(&t->nest, x->g, a, b);
	return t;
}

/* How likely a reader of random chunks begins here: not at an end of the dataset. */
static double begins(const struct touch *x, uint64_t number)
{
	return number == 0 || (double)number + 1 >= x->chunks ? 2 / x->chunks : 1;
}

/* Three chunks in progression. */
struct three {
	uint64_t first, middle, last;
	double chance;
	uint32_t since; /* touches since the one before the last */
};

static void consider(const struct touch *x, struct three *best, uint64_t first, uint64_t middle,
		     uint64_t last, double combinations)
{
	const struct grid_vector s = {first, middle, 2};
	uint64_t found = 0;
	if (first == middle || last - middle != middle - first ||
	    !grid_vector_sum(x->g, first, &s, 1, &found) || found != last)
		return;
	const double chance =
		combinations * begins(x, first) * grid_vector_simpler(x->g, first, middle);
	if (chance < best->chance)
		*best = (struct three){first, middle, last, chance, 0};
}

/* The simplest and most recent ones. The order in which they came is the direction; readers side
 * by side may bring them in another order, but that has to be the more remarkable. */
static struct three find_three(const struct touch *x)
{
	struct three best = {.chance = CHANCE_WATCHED};
	for (unsigned int i = 1; i < x->n; i++) {
		const uint64_t older = x->loose[i];
		const double combinations = (i + 1.0) * i / 2 / x->chunks / x->chunks;
		for (unsigned int k = 0; k < i; k++) {
			const uint64_t newer = x->loose[k];
			const double chance = best.chance;
			consider(x, &best, older, newer, x->number, combinations);
			consider(x, &best, newer, older, x->number, combinations * OUT_OF_ORDER);
			consider(x, &best, older, x->number, newer, combinations * OUT_OF_ORDER);
			if (best.chance < chance)
				best.since = k;
		}
	}
	return best;
}

static bool is_progression(struct touch *x, struct track **track, enum pattern_event *event)
{
	const struct three found = find_three(x);
	if (found.chance >= CHANCE_WATCHED)
		return false;
	struct track *t = birth(x, found.first, found.middle, found.chance);
	loop_nest_step(&t->nest, x->g, 1);
	t->misses = found.since;
	has_moved(x, t);
	absorb(x, t);
	*event = event_of(t, track);
	return true;
}

/* A track whose runs begin here and there explains its chunks badly: they are kept as if they were
 * loose, and may make another progression, which is believed at once. */
static void reconsider(struct touch *x, struct track **track, enum pattern_event *event)
{
	struct track *t = NULL;
	enum pattern_event other = PATTERN_RANDOM;
	look_around(x);
	if (find_three(x).chance < CHANCE_BELIEVED && is_progression(x, &t, &other)) {
		*track = t;
		*event = other;
	} else if (!is_loose(x, x->number)) {
		loose_add(x->p, x->dataset, x->number);
	}
}

/* A touch that a track expects, or has passed. */
static bool is_expected(struct touch *x, struct track **track, enum pattern_event *event)
{
	struct track *best = NULL;
	int best_at = 0;
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		const int at = is_of(t, x->dataset) ? loop_nest_find(&t->nest, x->g, x->number) : 0;
		if (at != 0 && better(t, at, best, best_at)) {
			best = t;
			best_at = at;
		}
	}
	if (!best)
		return false;
	if (best_at > 0) {
		advance(x, best, (unsigned int)best_at);
		*event = event_of(best, track);
		if (loop_nest_wanders(&best->nest))
			reconsider(x, track, event);
	} else {
		loop_nest_late(&best->nest, best_at);
		*track = believed(best) ? best : NULL;
		*event = PATTERN_AGAIN;
	}
	return true;
}

/* What it is worth that two chunks are so many strides of a track apart, the older of which is the
 * n-th loose one: in sequence, or brought out of order by readers side by side. */
static double worth_of_run(const struct touch *x, const struct track *t, unsigned int n,
			   int strides)
{
	const double p = occasions(t) * (n + 1) * x->ntracks / x->chunks;
	if (strides == 1)
		return worth(p);
	return worth(p * OUT_OF_ORDER) < 1 ? worth(p * OUT_OF_ORDER) : 0;
}

/* The second chunk of a track's next run: the first is loose. Of several tracks it is the one for
 * which the run's start is the simplest. */
static bool is_run(struct touch *x, struct track **track, enum pattern_event *event)
{
	struct track *best = NULL;
	double least = 0, by = 0;
	uint64_t start = 0, other = 0;
	for (unsigned int n = 0; n < x->n && n < LOOSE_START; n++) {
		const uint64_t loose = x->loose[n];
		for (size_t i = 0; i < PATTERN_TRACKS; i++) {
			struct track *t = &x->p->tracks[i];
			const int strides =
				is_of(t, x->dataset)
					? loop_nest_strides(&t->nest, x->g, loose, x->number)
					: 0;
			const double w = strides ? worth_of_run(x, t, n, strides) : 0;
			if (w == 0 || (t->misses <= t->rhythm && !has_ended(x, t)))
				continue;
			const uint64_t first = strides > 0 ? loose : x->number;
			const double way =
				grid_vector_simpler(x->g, loop_nest_run_start(&t->nest), first) *
				(n + 1);
			if (best && way >= least)
				continue;
			best = t;
			least = way;
			by = w;
			start = first;
			other = strides > 0 ? x->number : loose;
		}
	}
	if (!best)
		return false;
	set_chance(best, best->chance * by);
	for (uint64_t before = 0;
	     loop_nest_before(&best->nest, x->g, start, &before) && is_loose(x, before);)
		start = before;
	restart(x, best, start, other);
	*event = event_of(best, track);
	if (loop_nest_wanders(&best->nest))
		reconsider(x, track, event);
	return true;
}

static bool is_beginning(struct touch *x, struct track **track, enum pattern_event *event)
{
	if (x->number > 1 || !is_loose(x, 1 - x->number) || (x->number == 0 && is_loose(x, 2)))
		return false;
	struct track *t = birth(x, 0, 1, 0);
	t->nest.levels[0].seen = 2;
	has_moved(x, t);
	absorb(x, t);
	*event = event_of(t, track);
	return true;
}

static enum pattern_event guess(struct touch *x, struct track *t, struct track **track)
{
	has_moved(x, t);
	t->guess = true;
	return event_of(t, track);
}

/* The first chunk of a run, after the last one of the run before. */
static bool is_start(struct touch *x, struct track **track, enum pattern_event *event)
{
	struct track *best = NULL;
	double least = CHANCE_GUESS;
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (!is_of(t, x->dataset) || !believed(t) || t->guess || !has_ended(x, t))
			continue;
		double way = grid_vector_simpler(x->g, loop_nest_run_start(&t->nest), x->number);
		double chance = way * x->ntracks / x->chunks;
		if (chance >= least)
			continue;
		best = t;
		least = chance;
	}
	if (!best)
		return false;
	loop_nest_restart(&best->nest, x->g, x->number);
	*event = guess(x, best, track);
	return true;
}

static bool is_followed(const struct touch *x)
{
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		const struct track *t = &x->p->tracks[i];
		if (is_of(t, x->dataset) && believed(t) && !t->guess && !t->broken)
			return true;
	}
	return false;
}

/* Where nothing is known yet. Both chunks stay loose: the guess may be wrong. */
static bool is_simple_step(struct touch *x, struct track **track, enum pattern_event *event)
{
	double least = CHANCE_GUESS;
	uint64_t from = 0;
	if (x->p->guesses_lost >= GUESSES_LOST || is_followed(x))
		return false;
	for (unsigned int i = 0; i < x->n && i < LOOSE_GUESS; i++) {
		double chance =
			grid_vector_simpler(x->g, x->loose[i], x->number) * (i + 1) / x->chunks;
		if (chance < least) {
			least = chance;
			from = x->loose[i];
		}
	}
	if (least >= CHANCE_GUESS)
		return false;
	*event = guess(x, birth(x, from, x->number, least), track);
	x->p->guesses_lost++;
	loose_add(x->p, x->dataset, x->number);
	return true;
}

/* The track that was followed last breaks when more was missed than its rhythm explains. That a
 * chunk comes in between, once, is usual: the kernel reads ahead. */
static enum pattern_event breaks(struct touch *x, struct track **track)
{
	struct track *last = NULL;
	count_miss(x, NULL);
	loose_add(x->p, x->dataset, x->number);
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		struct track *t = &x->p->tracks[i];
		if (is_of(t, x->dataset) && believed(t) && (!last || t->used > last->used))
			last = t;
	}
	if (!last || last->broken || last->misses <= 1 + 2 * last->rhythm)
		return PATTERN_RANDOM;
	last->broken = true;
	if (has_ended(x, last))
		return PATTERN_RANDOM;
	*track = last;
	return PATTERN_BREAKS;
}

enum pattern_event pattern_touch(struct pattern *p, uint32_t dataset, const struct chunk_grid *g,
				 uint64_t number, struct track **track)
{
	struct touch x = {.p = p, .g = g, .number = number, .dataset = dataset};
	enum pattern_event event = PATTERN_AGAIN;
	const uint64_t chunks = chunk_grid_size(g);
	*track = NULL;
	if (number >= chunks)
		return PATTERN_RANDOM;
	for (size_t i = 0; i < PATTERN_TRACKS; i++) {
		if (is_of(&p->tracks[i], dataset) && p->tracks[i].nest.newest == number) {
			*track = believed(&p->tracks[i]) ? &p->tracks[i] : NULL;
			return PATTERN_AGAIN;
		}
	}
	x.chunks = (double)chunks;
	look_around(&x);
	if (is_expected(&x, track, &event))
		return event;
	if (is_loose(&x, number))
		return PATTERN_AGAIN;
	if (is_bend(&x, track, &event) || is_early(&x, track, &event) ||
	    is_run(&x, track, &event) || is_beginning(&x, track, &event) ||
	    is_progression(&x, track, &event) || is_start(&x, track, &event) ||
	    is_simple_step(&x, track, &event))
		return event;
	return breaks(&x, track);
}

bool pattern_expect(const struct track *t, const struct chunk_grid *g, uint64_t n, uint64_t *number)
{
	return loop_nest_expect(&t->nest, g, n, number);
}

uint32_t pattern_worth(const struct track *t)
{
	return (uint32_t)(CHANCE_WASTED / (t->chance > CHANCE_MIN ? t->chance : CHANCE_MIN));
}
