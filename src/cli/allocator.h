/* SPDX-License-Identifier: Apache-2.0 */
/* Tunes malloc(3) for buffers of a chunk's size. */
#ifndef CLI_ALLOCATOR_H
#define CLI_ALLOCATOR_H

/* Call once, before any thread starts. */
void allocator_setup(void);

#endif
