/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of AWS in whole seconds: listings have milliseconds and headers do not, and a version of an
 * object must have one time. strptime(3) depends on the locale, so it is not used. Pure.
 */
#include <aws/time.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Callers store nanoseconds in an int64_t, which ends in 2262. */
enum { YEAR_MAX = 2261 };

static int64_t seconds(int year, int month, int day, int hour, int minute, int second)
{
	struct tm tm = {.tm_year = year - 1900,
			.tm_mon = month - 1,
			.tm_mday = day,
			.tm_hour = hour,
			.tm_min = minute,
			.tm_sec = second};
	const bool sane = year >= 1970 && year <= YEAR_MAX && month >= 1 && month <= 12 &&
			  day >= 1 && day <= 31 && hour >= 0 && hour <= 23 && minute >= 0 &&
			  minute <= 59 && second >= 0 && second <= 60;
	return sane ? (int64_t)timegm(&tm) : 0;
}

int64_t s3_time_iso(const char *text)
{
	int year, month, day, hour, minute, second;
	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &year, &month, &day, &hour, &minute, &second) !=
	    6)
		return 0;
	return seconds(year, month, day, hour, minute, second);
}

int64_t s3_time_http(const char *text)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int year, day, hour, minute, second;
	char month[4];
	if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d", &day, month, &year, &hour, &minute,
		   &second) != 6)
		return 0;
	const char *at = strlen(month) == 3 ? strstr(months, month) : NULL;
	if (!at || (at - months) % 3 != 0)
		return 0;
	return seconds(year, (int)(at - months) / 3 + 1, day, hour, minute, second);
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
