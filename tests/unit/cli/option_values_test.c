/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/option_values.h"

static void numbers(void **state)
{
	static const struct {
		const char *text;
		int base;
		uint64_t max;
		bool ok;
		uint64_t value;
	} cases[] = {
		{"0", 10, 5, true, 0},
		{"5", 10, 5, true, 5},
		{"022", 8, 0777, true, 18},
		{"18446744073709551615", 10, UINT64_MAX, true, UINT64_MAX},
		{"18446744073709551616", 10, UINT64_MAX, false, 0},
		{"6", 10, 5, false, 0},
		{"8", 8, 0777, false, 0},
		{"1 ", 10, 5, false, 0},
		{" 1", 10, 5, false, 0},
		{"+1", 10, 5, false, 0},
		{"-1", 10, UINT64_MAX, false, 0},
		{"0x1", 10, 5, false, 0},
		{"1k", 10, 5000, false, 0},
		{"", 10, 5, false, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t value = 0;
		if (value_number(cases[i].text, cases[i].base, cases[i].max, &value) != cases[i].ok)
			fail_msg("\"%s\"", cases[i].text);
		if (cases[i].ok)
			assert_int_equal(value, cases[i].value);
	}
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{"0", 0},
		{"1", 1},
		{"7B", 7},
		{"512k", 512 << 10},
		{"512K", 512 << 10},
		{"512KiB", 512 << 10},
		{"512kib", 512 << 10},
		{"3M", 3 << 20},
		{"3MiB", 3 << 20},
		{"1G", 1 << 30},
		{"1GiB", 1 << 30},
		{"2T", UINT64_C(2) << 40},
		{"16777215T", UINT64_C(16777215) << 40},
	};
	static const char *const bad[] = {"",	       "1 ",	" 1",	"1 G",
					  "1G ",       "1KB",	"1iB",	"1Ki",
					  "1P",	       "1GiBB", "1.5G", "-1",
					  "+1",	       "0x10",	"lots", "1\n",
					  "16777216T", "1@",	"1\\K", "99999999999999999999"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t value = 99;
		if (!value_size(good[i].text, &value) || value != good[i].value)
			fail_msg("%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t value;
		if (value_size(bad[i], &value))
			fail_msg("\"%s\" is accepted", bad[i]);
	}
}

static void times(void **state)
{
	static const struct {
		const char *text;
		double value;
	} good[] = {
		{"0", 0},   {"30", 30}, {"0.5", 0.5},	{".5", 0.5},	{"30s", 30},
		{"1m", 60}, {"1M", 60}, {"1.5h", 5400}, {"2d", 172800}, {"1000000000", 1e9},
	};
	static const char *const bad[] = {"",		".",   "1 ",	" 1",  "1ms",	"1min",
					  "nan",	"inf", "-1",	"+1",  "0x10",	"1e3",
					  "1000000001", "s",   "1.2.3", "1m ", "20000d"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		double value = -1;
		if (!value_seconds(good[i].text, &value) || value < good[i].value ||
		    value > good[i].value)
			fail_msg("%s", good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		double value;
		if (value_seconds(bad[i], &value))
			fail_msg("\"%s\" is accepted", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(sizes),
		cmocka_unit_test(times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
