/* SPDX-License-Identifier: Apache-2.0 */
/* A program on names of its own (plain.h, folders.h): what it needs of the simulation, and how its
 * calls become acts of order.h. It belongs to the actor of its operation. */
#ifndef SIM_PLAYER_H
#define SIM_PLAYER_H

#include "engine_box.h"
#include "order.h"
#include "rng.h"

/* Adds a line to the faults of a judge. who: its kind of names. */
void player_fault(struct str *faults, const char *who, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What programs of shared.h do; those of mixed.h know the first two. */
enum play {
	PLAY_ALL,
	PLAY_BRIEF,  /* its calls are short, and for one name */
	PLAY_HOLD,   /* it has this name open for long, and calls fsync after a few writes */
	PLAY_REMOVE, /* it removes this name some time after it is there */
	PLAY_TURN    /* see turned.h */
};

struct player {
	struct order *order; /* to which acts are added */
	struct box *box;
	struct rng random;
	void (*wait)(void *ctx);
	void *ctx;
	enum play plays;
	bool plain_delete; /* the service has no conditional DELETE */
	bool has_draft;	   /* it has failed, and its engine may have a draft */
};

uint64_t player_moment(const struct player *g);
bool player_is_dead(const struct player *g);
/* Lets others run. */
void player_wait(const struct player *g);
/* Begins an act, or returns NULL if there are too many. */
struct order_act *player_begin(struct player *g, const char *what, unsigned int at,
			       unsigned int to);
void player_end(struct player *g, struct order_act *a);
/* What the engine knows of a register is valid for a second (metadata_ttl), unless it has found
 * or changed it meanwhile (DETAILS.md, "Freshness"). So a step of an act may see what was so when
 * an earlier act ran. */
uint64_t player_since(const struct player *g, const struct order_act *act, unsigned int at,
		      uint64_t from);
/* Adds a step of what the program has seen since a moment. That the register has nothing, the
 * engine may have known before. */
struct order_step *player_look(struct player *g, struct order_act *a, enum order_kind kind,
			       uint16_t value, uint64_t from);
/* Writes a line of the trace, and returns whether the call has had an answer. */
bool player_note(struct player *g, const char *what, const char *name, int rc);
/* Whether an error tells what other programs have done. */
bool player_is_answer(int rc);
/* Whether the engine has repeated a request since it had repeated so many. */
bool player_has_repeated(const struct player *g, unsigned int repeated);

#endif
