/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors with a reason. Functions return 0 or a negative errno. The message is in a struct err, and
 * each caller may put its own context in front: "domain /home/a.h5: dataset d-…: chunk 3_4: Blosc
 * frame says 9999999 bytes, chunk has 4096". Every function here accepts a NULL err and then only
 * returns the code.
 */
#ifndef HSMOUNT_ERR_H
#define HSMOUNT_ERR_H

#include <stddef.h>

enum { ERR_MAX = 1024 };

struct err {
	int code; /* the negative errno of the first failure; 0 if there was none */
	unsigned int retry_after_ms; /* the delay that the server requests, if code is -EAGAIN */
	char msg[ERR_MAX];	     /* the reason, with a NUL */
};

#define ERR_INIT                                                                                   \
	{                                                                                          \
		.code = 0, .msg = ""                                                               \
	}

/* Replaces the code and the message of err, and returns the code. Control bytes become \xNN, so
 * that a hostile key cannot forge a line of the log. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "fmt: " before the message. Returns err's code, or code if err is NULL or has none. A
 * message that is too long is cut at its end. */
int err_wrap(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Does the same as err_set() with the message "fmt: strerror(-code)". */
int err_errno(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets err to "out of memory", and returns -ENOMEM. */
int err_no_memory(struct err *err);

/* Resets err, which may be NULL, without writing all of it. */
static inline void err_clear(struct err *err)
{
	if (!err)
		return;
	err->code = 0;
	err->retry_after_ms = 0;
	err->msg[0] = '\0';
}

/* Replaces the contents of `to` by those of `from`, without copying unused bytes. */
void err_copy(struct err *to, const struct err *from);

#endif
