/* SPDX-License-Identifier: Apache-2.0 */
/* See option_values.h. */
#include "option_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* strtoull() alone accepts blanks and signs. */
static bool whole(const char *text, int base, uint64_t *out, char **end)
{
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*out = strtoull(text, end, base);
	return errno == 0;
}

bool value_number(const char *text, int base, uint64_t max, uint64_t *out)
{
	char *end;
	return whole(text, base, out, &end) && !*end && *out <= max;
}

/* Returns the power of two that a unit stands for, or -1 if it is not a unit. */
static int shift_of(const char *unit)
{
	static const char letters[] = "kmgt";
	if (!*unit || strcasecmp(unit, "b") == 0)
		return 0;
	const char *letter = strchr(letters, unit[0] | 0x20);
	if (!letter || (unit[1] && strcasecmp(unit + 1, "ib") != 0))
		return -1;
	return 10 * (int)(letter - letters + 1);
}

bool value_size(const char *text, uint64_t *out)
{
	char *end;
	uint64_t n;
	if (!whole(text, 10, &n, &end))
		return false;
	const int shift = shift_of(end);
	if (shift < 0 || n > UINT64_MAX >> shift)
		return false;
	*out = n << shift;
	return true;
}

bool value_seconds(const char *text, double *out)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
	const size_t digits = strspn(text, "0123456789.");
	char *end;
	/* strtod() alone would accept blanks, signs, "nan" and hexadecimal numbers, too. */
	const double n = strtod(text, &end);
	if (digits == 0 || end != text + digits)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcasecmp(end, units[i].unit) == 0) {
			*out = n * units[i].seconds;
			return *out <= 1e9;
		}
	return false;
}
