/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine requests before a program asks for it. A program usually opens its first file soon
 * after the mount. Until then there is time to open connections and to read the names in the root.
 */
#ifndef ENGINE_WARM_UP_H
#define ENGINE_WARM_UP_H

struct warm_up;
struct engine;

/* Begins the requests, and does not wait for them. Returns NULL if there are none, because the
 * bucket is a directory, or if the system cannot start a thread. */
struct warm_up *warm_up_start(struct engine *e);
/* Waits until the names have been read. */
void warm_up_stop(struct warm_up *early);

#endif
