/* SPDX-License-Identifier: Apache-2.0 */
/* The process's allocator, set up for buffers of a chunk's size. */
#ifndef CLI_ALLOCATOR_H
#define CLI_ALLOCATOR_H

/* Call once, before any thread is started. */
void allocator_setup(void);

#endif
