/* SPDX-License-Identifier: Apache-2.0 */
/* libfuse's interface, in the version that this is written for. */
#ifndef FUSE_FUSE_API_H
#define FUSE_FUSE_API_H

#define FUSE_USE_VERSION 314

#include <fuse_lowlevel.h>

#endif
