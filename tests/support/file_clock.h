/* SPDX-License-Identifier: Apache-2.0 */
/* The clock with which the kernel stamps files. It advances every few milliseconds. */
#ifndef TESTS_SUPPORT_FILE_CLOCK_H
#define TESTS_SUPPORT_FILE_CLOCK_H

#include <sched.h>
#include <sys/stat.h>
#include <time.h>

/* Waits until a change of the file gives it another time, and so another version. */
static inline void file_clock_wait(const char *path)
{
	struct stat st;
	struct timespec now;
	assert_int_equal(stat(path, &st), 0);
	do {
		sched_yield();
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec < st.st_ctim.tv_sec ||
		 (now.tv_sec == st.st_ctim.tv_sec && now.tv_nsec <= st.st_ctim.tv_nsec));
}

#endif
