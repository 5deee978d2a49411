/* SPDX-License-Identifier: Apache-2.0 */
/* The masks of proc(5), /proc/PID/status: signal n is bit n - 1. */
#include "signals.h"

#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t bit(int number)
{
	return UINT64_C(1) << (number - 1);
}

bool signals_end(pid_t thread)
{
	const uint64_t ends = bit(SIGHUP) | bit(SIGINT) | bit(SIGQUIT) | bit(SIGTERM) |
			      bit(SIGKILL) | bit(SIGXCPU);
	uint64_t own = 0, process = 0, blocked = 0;
	unsigned int found = 0;
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	FILE *f = fopen(path, "re");
	if (!f)
		return true;
	while (fgets(line, sizeof(line), f)) {
		found += sscanf(line, "SigPnd: %" SCNx64, &own) == 1;
		found += sscanf(line, "ShdPnd: %" SCNx64, &process) == 1;
		found += sscanf(line, "SigBlk: %" SCNx64, &blocked) == 1;
	}
	fclose(f);
	return found != 3 || ((own | process) & ~blocked & ends) != 0;
}
