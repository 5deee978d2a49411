/* SPDX-License-Identifier: Apache-2.0 */
/* libfuse's low-level API. FUSE_USE_VERSION must be the same in all source files. */
#ifndef FUSE_FUSE_API_H
#define FUSE_FUSE_API_H

#define FUSE_USE_VERSION 314

#include <fuse_lowlevel.h>

#endif
