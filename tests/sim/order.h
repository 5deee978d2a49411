/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of oracles: a few registers, and what programs have done with them and have seen. It looks
 * for an order of all steps that explains what was seen, and what the registers have at the end.
 *
 * An *act* is a call of a program: one or more steps on a register, in their order. Each step
 * happens at one moment between two known ones. A step that may be left out may also happen at any
 * later moment: a request that has had no answer may arrive later, and recovery repeats a commit.
 * See model_names.h for the same search over whole histories.
 */
#ifndef SIM_ORDER_H
#define SIM_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORDER_REGISTERS = 6, ORDER_ACTS = 96, ORDER_STEPS = 12 };
#define ORDER_NEVER UINT64_MAX
#define ORDER_ANY   0xfffe /* at the end: nobody knows */

/* Those from ORDER_SHOW to ORDER_CHECK change nothing. */
enum order_kind {
	ORDER_NONE,
	ORDER_SEE,     /* the act notes what the register has */
	ORDER_FIND,    /* the same, and that is something */
	ORDER_SHOW,    /* the register has this value, which is noted */
	ORDER_DRAFT,   /* the same; or it has, or act `of` has noted, nothing */
	ORDER_BARE,    /* it has nothing, and act `of` has noted a value */
	ORDER_THERE,   /* it has a value */
	ORDER_SOME,    /* it, or one of the registers `to` and `also`, has a value */
	ORDER_NEITHER, /* they have nothing */
	ORDER_CHECK,   /* it has a value, and that is what was noted */
	ORDER_MAKE,    /* it has nothing, and gets this value */
	ORDER_FILL,    /* it gets this value if it has nothing */
	/* It gets this value, if it still has what was noted. One that must happen notes the value.
	 * One that may be left out may also happen several times. */
	ORDER_REPLACE,
	ORDER_RENEW,  /* the same, also if it has nothing */
	ORDER_SET,    /* it has a value, and gets this one */
	ORDER_PUT,    /* it gets this value, whatever it has */
	ORDER_REMOVE, /* it has a value, and loses it */
	ORDER_DROP,   /* it loses its value, if that is what was noted */
	ORDER_WIPE,   /* it loses its value, whatever that is */
	ORDER_FLIP,   /* it loses its value, or gets this one; any number of times */
	ORDER_LINK,   /* the register `to` gets the same value, which is noted */
	ORDER_GIVE,   /* the register `to` gets what was noted, unless that is nothing */
	ORDER_CARRY,  /* what it has is noted, and the register `to`, which has nothing, gets it */
	ORDER_LEAVE,  /* it loses what was noted, if that is something */
	/* Of registers with two halves: order_halves.c. */
	ORDER_TOP,	 /* the upper value is this one, which is noted */
	ORDER_TOP_LACKS, /* the half of this value has nothing */
	ORDER_TOP_SEE,	 /* the act notes the upper value */
	ORDER_TOP_FIND,	 /* the same, and that is something */
	/* The half of this value gets it, if that half still has what was noted, or nothing if
	 * nothing of it was noted. A lower value takes the place of a noted upper one, whatever the
	 * lower half has. If this step or the next kind may be left out, what counts is what act
	 * `of` has noted, and this one may also happen several times. */
	ORDER_TOP_RENEW,
	ORDER_TOP_CLEAR,    /* the half that this value has not loses what was noted of it */
	ORDER_TOP_GIVE,	    /* the same half of the register `to` gets what was noted */
	ORDER_TOP_CLEAR_TO, /* the other half of the register `to` loses its value */
	ORDER_TOP_BACK,	    /* the lower half loses this value, or that which was noted of `to` */
	ORDER_TOP_LEAVE,    /* it loses what was noted */
	ORDER_TOP_WIPE,	    /* the half of what was noted loses its value, whatever that is */
};

struct order_step {
	enum order_kind kind;
	unsigned int at, to;  /* registers: those of the act, unless the caller changes them */
	unsigned int also;    /* of ORDER_SOME, ORDER_NEITHER; `to`, unless the caller changes it */
	uint16_t value;	      /* 0: nothing */
	unsigned int of;      /* of ORDER_DRAFT, ORDER_BARE; and see ORDER_TOP_RENEW */
	uint64_t from, until; /* moments */
	uint64_t absent_from; /* from then on, if the register has nothing */
	bool may;	      /* it may be left out, and then the later steps of the act are, too */
	bool skip;	      /* it alone may be left out */
	bool rest; /* it and the later steps of the act may be left out, but not after `until` */
};

struct order_act {
	unsigned int at, to; /* registers */
	unsigned int engine;
	const char *what;
	uint64_t begin_ns, end_ns, begin, end; /* end: 0 as long as it goes on */
	struct order_step steps[ORDER_STEPS + 1];
};

struct order {
	struct order_act acts[ORDER_ACTS];
	unsigned int n;
};

/* A register may have two halves: the lower one is hidden while the upper one has a value. */
#define ORDER_UPPER 0xff00

enum order_result { ORDER_FOUND, ORDER_IMPOSSIBLE, ORDER_TOO_LARGE };

/* Adds an act, or returns NULL if there are too many. */
struct order_act *order_act(struct order *o, const char *what, unsigned int engine, unsigned int at,
			    unsigned int to);
/* Adds a step to an act. until is ignored if it may be left out. */
struct order_step *order_step(struct order_act *a, enum order_kind kind, uint16_t value,
			      uint64_t from, uint64_t until, bool may);
/* The last step of an act. */
struct order_step *order_last(struct order_act *a);
/* Describes the i-th act. */
void order_describe(const struct order *o, unsigned int i, char *text, size_t size);
/* order_halves.c: does a step of the kinds from ORDER_TOP on. seen: what its act has noted. */
bool order_take_half(const struct order_step *step, uint16_t *at, uint16_t *to, uint16_t *seen);
enum order_result order_search(const struct order *o, const uint16_t first[ORDER_REGISTERS],
			       const uint16_t end[ORDER_REGISTERS]);

#endif
