/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of an image, read back by the project's own decoders. */
#ifndef FUZZ_DOMAIN_HEADERS_H
#define FUZZ_DOMAIN_HEADERS_H

#include <image/image.h>

/* Decodes the superblock, then every object header and its messages. Follows the links of compact
 * groups and the addresses of committed types. Aborts if anything cannot be decoded. */
void check_headers(struct image *img);

#endif
