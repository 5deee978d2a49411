/* SPDX-License-Identifier: Apache-2.0 */
/* See order.h: registers with two halves, such as a name that a domain and a plain object have. No
 * state. */
#include "order.h"

/* What is seen of a register. */
static uint16_t top_of(uint16_t v)
{
	return v & ORDER_UPPER ? v & ORDER_UPPER : v;
}

/* The half of a value that has only one. */
static uint16_t half_of(uint16_t v)
{
	return v & ORDER_UPPER ? ORDER_UPPER : (uint16_t)~ORDER_UPPER;
}

static void put_half(uint16_t *reg, uint16_t value, uint16_t half)
{
	*reg = (uint16_t)((*reg & ~half) | value);
}

static bool renew(uint16_t *at, uint16_t value, uint16_t seen)
{
	const uint16_t half = half_of(value), now = *at & half, noted = seen & half;
	const bool is_over_upper = half != ORDER_UPPER && seen & ORDER_UPPER;
	if (now != noted && now != value && !is_over_upper)
		return false;
	put_half(at, value, half);
	return true;
}

/* An upper value hides a lower one that could not be taken away. A step that may be left out and
 * changes nothing is left out. */
static bool clear(uint16_t *at, uint16_t value, uint16_t seen, bool may)
{
	const uint16_t other = (uint16_t)~half_of(value), noted = seen & other;
	if (noted && (*at & other) != noted)
		return half_of(value) == ORDER_UPPER;
	if (noted)
		put_half(at, 0, other);
	return noted || !may;
}

static bool leave(uint16_t *at, uint16_t seen)
{
	if (!seen || (*at & half_of(seen)) != seen)
		return false;
	put_half(at, 0, half_of(seen));
	return true;
}

bool order_take_half(const struct order_step *step, uint16_t *at, uint16_t *to, uint16_t *seen)
{
	switch (step->kind) {
	case ORDER_TOP:
		*seen = top_of(*at);
		return *seen == step->value;
	case ORDER_TOP_LACKS:
		return !(*at & half_of(step->value));
	case ORDER_TOP_SEE:
	case ORDER_TOP_FIND:
		*seen = top_of(*at);
		return *seen || step->kind == ORDER_TOP_SEE;
	case ORDER_TOP_RENEW:
		return renew(at, step->value, *seen);
	case ORDER_TOP_CLEAR:
		return clear(at, step->value, *seen, step->may);
	case ORDER_TOP_GIVE:
		if (*seen)
			put_half(to, *seen, half_of(*seen));
		return *seen;
	case ORDER_TOP_CLEAR_TO:
		put_half(to, 0, (uint16_t)~half_of(*seen));
		return true;
	case ORDER_TOP_BACK:
		if (step->value)
			return leave(at, step->value);
		return !(*seen & ORDER_UPPER) && leave(to, *seen);
	case ORDER_TOP_LEAVE:
		return leave(at, *seen);
	default: /* ORDER_TOP_WIPE */
		put_half(at, 0, half_of(*seen));
		return true;
	}
}
