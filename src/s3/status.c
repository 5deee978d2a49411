/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps HTTP status and S3 error code to an errno ("Error responses", Amazon S3 API Reference). The
 * code has precedence: a 400 may be an expired token or a slow upload, a 403 a wrong clock. Pure.
 */
#include "status.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *code;
	int error;
} codes[] = {
	{"SlowDown", EAGAIN},
	{"InternalError", EAGAIN},
	{"ServiceUnavailable", EAGAIN},
	{"RequestTimeout", EAGAIN},
	{"OperationAborted", EAGAIN},
	{"ConditionalRequestConflict", EAGAIN},
	{"BadDigest", EAGAIN}, /* the body was damaged in transit */
	{"XAmzContentSHA256Mismatch", EAGAIN},
	{"XAmzContentChecksumMismatch", EAGAIN},
	{"NoSuchKey", ENOENT},
	/* This code says nothing about the object, so it is not ENOENT. */
	{"NoSuchBucket", EIO},
	{"AccessDenied", EACCES},
	{"ExpiredToken", EACCES},
	{"InvalidToken", EACCES},
	{"RequestTimeTooSkewed", EACCES},
	{"AuthorizationHeaderMalformed", EACCES},
	{"InvalidObjectState", EIO}, /* archived */
	{"EntityTooLarge", EFBIG},
	{"KeyTooLongError", ENAMETOOLONG},
	{"QuotaExceeded", ENOSPC},
};

static const struct {
	long status;
	int error;
} statuses[] = {
	{200, 0},      {204, 0},      {206, 0},	     {304, EALREADY}, {307, EAGAIN}, {401, EACCES},
	{403, EACCES}, {404, ENOENT}, {408, EAGAIN}, {409, EAGAIN},   {412, ESTALE}, {413, EFBIG},
	{416, ERANGE}, {425, EAGAIN}, {429, EAGAIN}, {500, EAGAIN},   {501, ENOSYS}, {502, EAGAIN},
	{503, EAGAIN}, {504, EAGAIN}, {507, ENOSPC}, {509, EAGAIN},
};

int s3_status_errno(long status, const char *code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(codes[i].code, code) == 0)
			return -codes[i].error;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].status == status)
			return -statuses[i].error;
	return -EIO;
}

/* Some versions of MinIO also answer SlowDown if too few disks have stored an object. They remove
 * it from these disks, and keep marks, so an object that has remained is recognised. */
bool s3_status_refuses(long status, const char *code)
{
	static const struct {
		long status;
		const char *code;
	} refusals[] = {
		{503, "SlowDown"}, /* too many requests */
		{409, "ConditionalRequestConflict"},
		{409, "OperationAborted"},
	};
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		if (refusals[i].status == status && strcmp(refusals[i].code, code) == 0)
			return true;
	return false;
}
