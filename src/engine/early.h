/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine requests before a program asks for it. A program usually opens its first file soon
 * after the mount. Until then there is time to open connections and to read the names in the root.
 */
#ifndef ENGINE_EARLY_H
#define ENGINE_EARLY_H

struct early;
struct engine;

/* Begins the requests; does not wait for them. NULL: there are none, because the bucket is a
 * directory, or the system cannot start a thread. */
struct early *early_start(struct engine *e);
/* Waits until the names have been read. */
void early_stop(struct early *early);

#endif
