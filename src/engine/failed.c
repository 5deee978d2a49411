/* SPDX-License-Identifier: Apache-2.0 */
/* See failed.h. The lock guards everything. */
#include "failed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 16 };

struct failed {
	pthread_mutex_t lock;
	unsigned int next; /* to be replaced */
	struct {
		char *path; /* NULL: none */
		struct err why;
		uint64_t until;
	} names[KEPT];
};

struct failed *failed_new(void)
{
	struct failed *f = calloc(1, sizeof(*f));
	if (f)
		pthread_mutex_init(&f->lock, NULL);
	return f;
}

void failed_free(struct failed *f)
{
	if (!f)
		return;
	for (unsigned int i = 0; i < KEPT; i++)
		free(f->names[i].path);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

void failed_put(struct failed *f, const char *path, const struct err *why, uint64_t until)
{
	char *copy = strdup(path);
	pthread_mutex_lock(&f->lock);
	const unsigned int i = f->next;
	f->next = (i + 1) % KEPT;
	free(f->names[i].path);
	f->names[i].path = copy;
	err_copy(&f->names[i].why, why);
	f->names[i].until = until;
	pthread_mutex_unlock(&f->lock);
}

int failed_get(struct failed *f, const char *path, uint64_t now, struct err *err)
{
	int rc = 0;
	pthread_mutex_lock(&f->lock);
	for (unsigned int i = 0; i < KEPT && !rc; i++) {
		if (!f->names[i].path || now >= f->names[i].until ||
		    strcmp(f->names[i].path, path) != 0)
			continue;
		rc = f->names[i].why.code;
		err_copy(err, &f->names[i].why);
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}
