/* SPDX-License-Identifier: Apache-2.0 */
/* See bucket/bucket.h. */
#include <bucket/bucket.h>

#include <schema/schema.h>

enum { S3_PUTS = 64, DIR_PUTS = 16 };

unsigned int bucket_puts(const struct bucket *bucket, unsigned int asked)
{
	if (!asked)
		asked = bucket->stack.s3 ? S3_PUTS : DIR_PUTS;
	if (!bucket->stack.s3 || !bucket->connections)
		return asked;
	return bucket->connections < asked ? bucket->connections : asked;
}

const struct schema_ops *bucket_new_domains(const struct bucket *bucket)
{
	return schema_of_new_domains(bucket->domains.schemas);
}
