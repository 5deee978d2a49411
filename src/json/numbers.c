/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in JSON values; the rules are in numbers.h. Pure. */
#include <json/numbers.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct json_number json_number_int(int64_t v)
{
	return (struct json_number){.bits = (uint64_t)v, .real = (double)v};
}

static uint64_t truncate(double v)
{
	if (v != v)
		return 0;
	if (v >= 0x1p63)
		return v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
	return v <= -0x1p63 ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)v;
}

struct json_number json_number_real(double v)
{
	return (struct json_number){.bits = truncate(v), .real = v};
}

/* ---- text ---- */

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns true if the whole text is a decimal integer. *bits becomes its value modulo 2^64. */
static bool integer_text(const char *s, size_t n, uint64_t *bits)
{
	bool negative = n > 0 && s[0] == '-';
	size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
	if (i == n)
		return false;
	uint64_t v = 0;
	for (; i < n; i++) {
		if (!is_digit(s[i]))
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	*bits = negative ? 0 - v : v;
	return true;
}

/* Returns true if both strtod() and Python's float() may accept the text: no hexadecimal, no
 * "nan(…)". */
static bool is_real_text(const char *s, size_t n)
{
	size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
	size_t rest = n - i;
	if ((rest == 3 && (!strncasecmp(s + i, "nan", 3) || !strncasecmp(s + i, "inf", 3))) ||
	    (rest == 8 && !strncasecmp(s + i, "infinity", 8)))
		return true;
	for (size_t k = i; k < n; k++)
		if (!is_digit(s[k]) && !strchr("+-.eE", s[k]))
			return false;
	return rest > 0;
}

bool json_number_text(const char *s, size_t n, struct json_number *out)
{
	/* Longer reals are refused. strtod() depends on the locale: the programs use "C". In
	 * another locale a fraction would be refused, but never misread. */
	char text[400];
	while (n > 0 && is_space(s[0])) {
		s++;
		n--;
	}
	while (n > 0 && is_space(s[n - 1]))
		n--;
	uint64_t bits = 0;
	bool integer = integer_text(s, n, &bits);
	if (integer && n >= sizeof(text)) {
		/* Out of the range of double. */
		*out = (struct json_number){bits, s[0] == '-' ? -INFINITY : INFINITY};
		return true;
	}
	if (n >= sizeof(text) || memchr(s, '\0', n) || !is_real_text(s, n))
		return false;
	memcpy(text, s, n);
	text[n] = '\0';
	char *end;
	double real = strtod(text, &end);
	if (end != text + n)
		return false;
	*out = json_number_real(real);
	if (integer)
		out->bits = bits;
	return true;
}
