/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line that shows the progress of a long command, if standard error is a terminal. The line is
 * not wider than the terminal. It is drawn as soon as the command starts. One thread.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_terminal;
	uint64_t done, total; /* bytes; total is 0 until it is known */
	int64_t started_ms, drawn_ms;
	const char *words;    /* of progress_count(), or NULL */
	unsigned int columns; /* of the line that is drawn, 0 when there is none */
};

void progress_start(struct progress *p);
/* Draws the line, but not more often than ten times a second, and when all is done. */
void progress_set(struct progress *p, uint64_t done, uint64_t total);
/* Draws another line instead: what is counted, and its number. */
void progress_count(struct progress *p, const char *words, uint64_t n);
/* Erases the line, so that another one can be printed. progress_set() draws it again. */
void progress_clear(struct progress *p);
/* Draws the line as complete and leaves it on the terminal. */
void progress_finish(struct progress *p);

/* Writes the text of the line, of at most `columns` characters, NUL-terminated: a bar if there is
 * room, percent, bytes, bytes per second and the remaining time, or the total time if done is
 * total. */
enum { PROGRESS_COLUMNS_MAX = 200 };
void progress_format(char out[PROGRESS_COLUMNS_MAX + 1], unsigned int columns, uint64_t done,
		     uint64_t total, uint64_t ms);

#endif
