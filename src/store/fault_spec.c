/* SPDX-License-Identifier: Apache-2.0 */
/* The language of injected failures; see the header. Pure. */
#include <store/fault_spec.h>

#include <errno.h>
#include <string.h>

enum { PPM = 1000000 };

static const char *const whats[] = {
	[FAULT_FAIL] = "fail",
	[FAULT_TRUNCATE] = "truncate",
	[FAULT_DELAY] = "delay",
	[FAULT_FLIP] = "flip",
};
enum { N_WHATS = sizeof(whats) / sizeof(whats[0]) };

static const struct {
	const char *name;
	int number;
} errnos[] = {
	{"EACCES", EACCES},
	{"EAGAIN", EAGAIN},
	{"EBUSY", EBUSY},
	{"ECONNREFUSED", ECONNREFUSED},
	{"ECONNRESET", ECONNRESET},
	{"EDQUOT", EDQUOT},
	{"EEXIST", EEXIST},
	{"EFBIG", EFBIG},
	{"EHOSTUNREACH", EHOSTUNREACH},
	{"EIO", EIO},
	{"ENOENT", ENOENT},
	{"ENOMEM", ENOMEM},
	{"ENOSPC", ENOSPC},
	{"EPERM", EPERM},
	{"EROFS", EROFS},
	{"ESTALE", ESTALE},
	{"ETIMEDOUT", ETIMEDOUT},
};
enum { N_ERRNOS = sizeof(errnos) / sizeof(errnos[0]) };

const char *fault_errno_name(int number)
{
	for (size_t i = 0; i < N_ERRNOS; i++)
		if (errnos[i].number == number)
			return errnos[i].name;
	return NULL;
}

/* ---- parsing: functions consume a window of text from its front ---- */

struct window {
	const char *p, *end;
};

static bool eat(struct window *w, char c)
{
	if (w->p == w->end || *w->p != c)
		return false;
	w->p++;
	return true;
}

/* Consumes the text up to one of the stops, or to the end, and returns it. The stop remains. */
static struct window until(struct window *w, const char *stops)
{
	struct window head = {.p = w->p};
	while (w->p != w->end && !strchr(stops, *w->p))
		w->p++;
	head.end = w->p;
	return head;
}

static bool is_word(const struct window *w, const char *word)
{
	size_t n = strlen(word);
	return (size_t)(w->end - w->p) == n && memcmp(w->p, word, n) == 0;
}

static bool eat_digit(struct window *w, unsigned int *digit)
{
	if (w->p == w->end || *w->p < '0' || *w->p > '9')
		return false;
	*digit = (unsigned int)(*w->p++ - '0');
	return true;
}

static bool eat_number(struct window *w, uint64_t *n)
{
	unsigned int digit;
	if (!eat_digit(w, &digit))
		return false;
	*n = digit;
	while (eat_digit(w, &digit))
		if (__builtin_mul_overflow(*n, 10, n) || __builtin_add_overflow(*n, digit, n))
			return false;
	return true;
}

/* Returns true if the whole window is one number. */
static bool number(struct window w, uint64_t *n)
{
	return eat_number(&w, n) && w.p == w.end;
}

static bool percentage(struct window w, uint64_t *ppm)
{
	unsigned int digit, scale = PPM / 100;
	uint64_t whole;
	if (!eat_number(&w, &whole) || whole > 100)
		return false;
	*ppm = whole * scale;
	if (eat(&w, '.')) {
		if (!eat_digit(&w, &digit))
			return false;
		do {
			scale /= 10;
			if (scale == 0)
				return false;
			*ppm += (uint64_t)digit * scale;
		} while (eat_digit(&w, &digit));
	}
	return *ppm <= PPM && w.p == w.end;
}

static bool parse_what(struct window w, struct fault_rule *rule)
{
	for (size_t i = 0; i < N_WHATS; i++) {
		if (is_word(&w, whats[i])) {
			rule->what = (enum fault_what)i;
			return true;
		}
	}
	return false;
}

static bool parse_when(struct window w, struct fault_rule *rule)
{
	if (w.p == w.end)
		return false;
	if (w.end[-1] == '%') {
		w.end--;
		rule->when = FAULT_PPM;
		return percentage(w, &rule->n);
	}
	if (eat(&w, '*')) {
		rule->when = FAULT_EVERY;
	} else if (w.end[-1] == '+') {
		w.end--;
		rule->when = FAULT_FROM;
	} else {
		rule->when = FAULT_NTH;
	}
	return number(w, &rule->n) && rule->n >= 1;
}

static bool parse_value(struct window w, struct fault_rule *rule)
{
	if (rule->what == FAULT_FAIL) {
		for (size_t i = 0; i < N_ERRNOS; i++) {
			if (is_word(&w, errnos[i].name)) {
				rule->value = (uint64_t)errnos[i].number;
				return true;
			}
		}
		return false;
	}
	return number(w, &rule->value) &&
	       (rule->what != FAULT_DELAY || rule->value <= FAULT_MS_MAX);
}

static bool parse_glob(struct window w, struct fault_rule *rule)
{
	size_t n = (size_t)(w.end - w.p);
	if (n == 0 || n > FAULT_GLOB_MAX)
		return false;
	memcpy(rule->glob, w.p, n);
	rule->glob[n] = '\0';
	return true;
}

/* Parses one rule, without its comma. Returns NULL, or what is wrong with it. */
static const char *parse_rule(struct window w, struct fault_rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	if (!parse_what(until(&w, ":@"), rule))
		return "must begin with fail:, truncate:, delay: or flip:";
	if (!eat(&w, ':') || !parse_when(until(&w, ":@"), rule))
		return "must say which requests: 3, 3+, *3 or 5%";
	if (eat(&w, ':')) {
		if (!parse_value(until(&w, "@"), rule))
			return "has an invalid value";
	} else if (rule->what == FAULT_DELAY) {
		return "needs a value, in milliseconds";
	} else if (rule->what == FAULT_FAIL) {
		rule->value = EIO;
	}
	if (eat(&w, '@') && !parse_glob(w, rule))
		return "has a pattern that is empty or too long";
	return NULL;
}

int fault_spec_parse(const char *text, struct fault_spec *spec, struct err *err)
{
	struct window w = {.p = text, .end = text + strlen(text)};
	spec->n = 0;
	if (w.p == w.end)
		return 0;
	do {
		struct window one = until(&w, ",");
		if (spec->n == FAULT_RULES_MAX)
			return err_set(err, -E2BIG, "more than %d faults", FAULT_RULES_MAX);
		const char *wrong = parse_rule(one, &spec->rules[spec->n]);
		if (wrong)
			return err_set(err, -EINVAL, "fault '%.*s' %s",
				       (int)(one.end - one.p > 200 ? 200 : one.end - one.p), one.p,
				       wrong);
		spec->n++;
	} while (eat(&w, ','));
	return 0;
}

/* ---- hits ---- */

/* splitmix64: a pseudo-random function of its argument, without state that threads would share. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

bool fault_rule_hits(const struct fault_rule *rule, unsigned int index, uint64_t nth)
{
	switch (rule->when) {
	case FAULT_NTH:
		return nth == rule->n;
	case FAULT_FROM:
		return nth >= rule->n;
	case FAULT_EVERY:
		return nth % rule->n == 0;
	case FAULT_PPM:
		return mix(mix(index) ^ nth) % PPM < rule->n;
	}
	return false;
}
