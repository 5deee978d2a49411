/* SPDX-License-Identifier: Apache-2.0 */
/* See handle.h. */
#include "handle.h"

#include <stdlib.h>

#include <utlist.h>

#include "session.h"
#include "writers.h"

struct handle *handle_new(struct session *s, struct engine_file *file)
{
	struct handle *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	atomic_init(&h->refs, 1);
	h->file = file;
	pthread_mutex_lock(&s->handles_lock);
	DL_APPEND(s->handles, h);
	pthread_mutex_unlock(&s->handles_lock);
	return h;
}

struct handle *handle_new_writer(struct session *s, struct engine_file *file, pid_t thread)
{
	struct engine_stat st;
	struct handle *h = handle_new(s, file);
	if (!h)
		return NULL;
	engine_file_stat(file, &st);
	h->writes = true;
	h->writers = writers_open(s->writers, st.version, thread);
	return h;
}

void handle_ref(struct handle *h)
{
	atomic_fetch_add(&h->refs, 1);
}

/* The process sees its draft until the draft is committed. */
void handle_unref(struct session *s, struct handle *h)
{
	if (atomic_fetch_sub(&h->refs, 1) > 1)
		return;
	pthread_mutex_lock(&s->handles_lock);
	DL_DELETE(s->handles, h);
	pthread_mutex_unlock(&s->handles_lock);
	engine_file_close(h->file);
	if (h->ino)
		inodes_close(s->inodes, h->ino);
	writers_close(s->writers, h->writers);
	free(h->text);
	free(h);
}

void handle_close_all(struct session *s)
{
	while (s->handles)
		handle_unref(s, s->handles);
}
