/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of AWS in whole seconds: listings have milliseconds and headers do not, and a version of an
 * object must have one time. strptime(3) depends on the locale, so it is not used. Pure.
 */
#include <aws/time.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Callers store nanoseconds in an int64_t, which ends in 2262. */
enum { YEAR_MAX = 2261 };

/* Returns the days since 1970 of a date of the Gregorian calendar. The year of this count begins
 * with March, so that the leap day is its last one. */
static int64_t days(int year, int month, int day)
{
	const int y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
	return (int64_t)365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int64_t seconds(int year, int month, int day, int hour, int minute, int second)
{
	const bool sane = year >= 1970 && year <= YEAR_MAX && month >= 1 && month <= 12 &&
			  day >= 1 && day <= 31 && hour >= 0 && hour <= 23 && minute >= 0 &&
			  minute <= 59 && second >= 0 && second <= 60;
	return sane ? ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second : 0;
}

/* Reads a number of at most n digits. sscanf(3) and timegm(3) are slow, and each object of a
 * listing has a time. */
static bool number(const char **at, int n, int *out)
{
	const char *from = *at;
	for (*out = 0; n > 0 && **at >= '0' && **at <= '9'; n--)
		*out = *out * 10 + *(*at)++ - '0';
	return *at > from;
}

static bool byte(const char **at, char c)
{
	const bool is_here = **at == c;
	*at += is_here;
	return is_here;
}

static bool spaces(const char **at)
{
	const char *from = *at;
	*at += strspn(*at, " ");
	return *at > from;
}

static bool time_of_day(const char **at, int *hour, int *minute, int *second)
{
	return number(at, 2, hour) && byte(at, ':') && number(at, 2, minute) && byte(at, ':') &&
	       number(at, 2, second);
}

int64_t s3_time_iso(const char *text)
{
	int year, month, day, hour, minute, second;
	if (!number(&text, 4, &year) || !byte(&text, '-') || !number(&text, 2, &month) ||
	    !byte(&text, '-') || !number(&text, 2, &day) || !byte(&text, 'T') ||
	    !time_of_day(&text, &hour, &minute, &second))
		return 0;
	return seconds(year, month, day, hour, minute, second);
}

/* Returns 1 to 12, or 0. */
static int month_of(const char **at)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	for (int i = 0; months[3 * i]; i++)
		if (strncmp(*at, &months[3 * i], 3) == 0) {
			*at += 3;
			return i + 1;
		}
	return 0;
}

int64_t s3_time_http(const char *text)
{
	enum { WEEKDAY = 3 };
	int year, month, day, hour, minute, second;
	if (strnlen(text, WEEKDAY) < WEEKDAY)
		return 0;
	text += WEEKDAY;
	if (!byte(&text, ',') || !spaces(&text) || !number(&text, 2, &day) || !spaces(&text) ||
	    !(month = month_of(&text)) || !spaces(&text) || !number(&text, 4, &year) ||
	    !spaces(&text) || !time_of_day(&text, &hour, &minute, &second))
		return 0;
	return seconds(year, month, day, hour, minute, second);
}

unsigned int s3_time_after(const char *text, int64_t now, unsigned int max_ms)
{
	const size_t digits = strspn(text, "0123456789");
	int64_t seconds_left = 0;
	if (digits && !text[digits])
		seconds_left = digits < 10 ? atol(text) : INT32_MAX;
	else if (!digits)
		seconds_left = s3_time_http(text) - now;
	if (seconds_left <= 0)
		return 0;
	return seconds_left < max_ms / 1000 ? (unsigned int)seconds_left * 1000 : max_ms;
}
