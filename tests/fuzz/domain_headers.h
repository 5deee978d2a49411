/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of an image, read back by the project's own decoders. */
#ifndef FUZZ_DOMAIN_HEADERS_H
#define FUZZ_DOMAIN_HEADERS_H

#include <image/image.h>

/* Aborts unless the superblock, and from it, link by link (of compact groups) and type by committed
 * type, every object header and the messages in it can be decoded. */
void check_headers(struct image *img);

#endif
