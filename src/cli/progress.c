/* SPDX-License-Identifier: Apache-2.0 */
/* See progress.h. */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <base/clock.h>

enum {
	DRAW_EVERY_MS = 100,
	COLUMNS_UNKNOWN = 80,
	BAR_MAX = 40,
	BAR_MIN = 8, /* a shorter bar is left out */
	RATE_AFTER_MS = 500,
	MB = 1000000,
};

static int64_t now_ms(void)
{
	return (int64_t)(clock_ns() / 1000000);
}

/* "1:02:03" or "2:03" */
static void format_time(char *out, size_t cap, double s)
{
	const uint64_t n = (uint64_t)s, hours = n / 3600, minutes = n / 60 % 60, seconds = n % 60;
	if (hours)
		snprintf(out, cap, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, hours, minutes, seconds);
	else
		snprintf(out, cap, "%" PRIu64 ":%02" PRIu64, minutes, seconds);
}

void progress_format(char out[PROGRESS_COLUMNS_MAX + 1], unsigned int columns, uint64_t done,
		     uint64_t total, uint64_t ms)
{
	char text[PROGRESS_COLUMNS_MAX + 1], rate[128] = "", bar[BAR_MAX + 4] = "", time[48];
	if (columns > PROGRESS_COLUMNS_MAX)
		columns = PROGRESS_COLUMNS_MAX;
	if (!total) {
		snprintf(out, columns + 1, "opening the file");
		return;
	}
	if (done > total)
		done = total;
	const double part = (double)done / (double)total, seconds = (double)ms / 1000;
	if (done && (ms >= RATE_AFTER_MS || done == total)) {
		format_time(time, sizeof(time),
			    done == total ? seconds : seconds * (1 - part) / part + 1);
		snprintf(rate, sizeof(rate), "  %" PRIu64 " MB/s  %s%s", ms ? done / 1000 / ms : 0,
			 done == total ? "in " : time, done == total ? time : " left");
	}
	const uint64_t total_mb = (total + MB - 1) / MB;
	snprintf(text, sizeof(text), "%3u%%  %" PRIu64 " of %" PRIu64 " MB%s",
		 (unsigned int)(part * 100), done == total ? total_mb : done / MB, total_mb, rate);
	const unsigned int used = (unsigned int)strlen(text) + 3; /* "[] " */
	unsigned int room = columns > used ? columns - used : 0;
	if (room > BAR_MAX)
		room = BAR_MAX;
	if (room >= BAR_MIN) {
		memset(bar, ' ', room + 3);
		bar[0] = '[';
		memset(bar + 1, '=', (size_t)(part * room));
		bar[room + 1] = ']';
	}
	snprintf(out, columns + 1, "%s%s", bar, text);
}

static unsigned int terminal_columns(void)
{
	struct winsize w = {0};
	ioctl(STDERR_FILENO, TIOCGWINSZ, &w);
	/* The last column stays empty: some terminals go to the next line behind it. */
	return w.ws_col > 1 ? w.ws_col - 1U : COLUMNS_UNKNOWN - 1;
}

static void draw(struct progress *p)
{
	char line[PROGRESS_COLUMNS_MAX + 1];
	const unsigned int columns = terminal_columns();
	p->drawn_ms = now_ms();
	if (p->words)
		snprintf(line, columns < sizeof(line) ? columns + 1 : sizeof(line), "%s: %" PRIu64,
			 p->words, p->done);
	else
		progress_format(line, columns, p->done, p->total,
				(uint64_t)(p->drawn_ms - p->started_ms));
	progress_clear(p);
	fputs(line, stderr);
	p->columns = (unsigned int)strlen(line);
}

void progress_start(struct progress *p)
{
	*p = (struct progress){.is_terminal = isatty(STDERR_FILENO), .started_ms = now_ms()};
	if (p->is_terminal)
		draw(p);
}

void progress_set(struct progress *p, uint64_t done, uint64_t total)
{
	if (!p->total) { /* opening is not part of the rate */
		p->started_ms = now_ms();
		p->drawn_ms = 0;
	}
	const bool ends = done >= total && p->done < p->total;
	p->done = done;
	p->total = total;
	if (p->is_terminal && (ends || now_ms() - p->drawn_ms >= DRAW_EVERY_MS))
		draw(p);
}

void progress_count(struct progress *p, const char *words, uint64_t n)
{
	p->done = n;
	p->words = words;
	if (p->is_terminal && now_ms() - p->drawn_ms >= DRAW_EVERY_MS)
		draw(p);
}

void progress_clear(struct progress *p)
{
	if (p->columns)
		fprintf(stderr, "\r%*s\r", (int)p->columns, "");
	p->columns = 0;
}

void progress_finish(struct progress *p)
{
	if (!p->is_terminal || !p->total)
		return;
	p->done = p->total;
	draw(p);
	fputc('\n', stderr);
	p->columns = 0;
}
