/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors with a reason. Functions return 0 or a negative errno; the words travel in an explicit
 * struct err that each level may prefix with what it was doing, outermost first:
 * "domain /home/a.h5: dataset d-…: chunk 3_4: Blosc frame says 9999999 bytes, chunk has 4096".
 * Every function here accepts a NULL err: then only the code travels.
 */
#ifndef HSMOUNT_ERR_H
#define HSMOUNT_ERR_H

#include <stddef.h>

enum { ERR_MAX = 1024 };

struct err {
	int code;	       /* negative errno of the first failure, 0 when there was none */
	unsigned int again_ms; /* with -EAGAIN: how long the other side wants to be left alone */
	char msg[ERR_MAX];
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		.code = 0, .msg = ""                                                               \
	}

/* Sets code and message (what was there is replaced); returns code. Foreign text is made
 * printable: control bytes become \xNN, so a hostile key cannot forge log lines. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "fmt: " in front of the message; returns the code it holds (or code when err is NULL).
 * The end of an over-long message is cut, never its front. */
int err_wrap(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* err_set with "fmt: strerror(-code)". */
int err_errno(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* No failure any more, without the cost of writing all of it. */
static inline void err_clear(struct err *err)
{
	err->code = 0;
	err->again_ms = 0;
	err->msg[0] = '\0';
}

void err_copy(struct err *to, const struct err *from);

#endif
