/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of the HDF5 File Format Specification 3.0 ("Spec" in comments).
 *
 * All encoders of h5/ write to a struct emit, which may only count. They set its `bad` if the bytes
 * do not fit, or if a length is too large for its field. All decoders take a struct h5_file and
 * return 0 or a negative errno. They fail with -EIO if something is damaged (err says what and
 * where), with -EOPNOTSUPP for a version or class without a decoder, with -ENOMEM, and with errors
 * of the source of the file.
 */
#ifndef H5_FORMAT_H
#define H5_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/cursor.h>
#include <base/emit.h>
#include <base/mem.h>
#include <h5/file.h>

enum h5_msg_type {
	H5_MSG_NIL = 0x00,
	H5_MSG_DATASPACE = 0x01,
	H5_MSG_LINK_INFO = 0x02,
	H5_MSG_DATATYPE = 0x03,
	H5_MSG_FILL_OLD = 0x04,
	H5_MSG_FILL = 0x05,
	H5_MSG_LINK = 0x06,
	H5_MSG_EXTERNAL_FILES = 0x07,
	H5_MSG_LAYOUT = 0x08,
	H5_MSG_GROUP_INFO = 0x0a,
	H5_MSG_PIPELINE = 0x0b,
	H5_MSG_ATTRIBUTE = 0x0c,
	H5_MSG_COMMENT = 0x0d,
	H5_MSG_MTIME_OLD = 0x0e,
	H5_MSG_SHARED_TABLE = 0x0f,
	H5_MSG_CONTINUATION = 0x10,
	H5_MSG_SYMBOL_TABLE = 0x11,
	H5_MSG_MTIME = 0x12,
	H5_MSG_BTREE_K = 0x13,
	H5_MSG_DRIVER_INFO = 0x14,
	H5_MSG_ATTRIBUTE_INFO = 0x15,
	H5_MSG_REFCOUNT = 0x16,
	H5_MSG_FREE_SPACE_INFO = 0x17,
	H5_MSG_CACHE_IMAGE = 0x18,
	H5_MSG_LAST_KNOWN = H5_MSG_CACHE_IMAGE,
};

enum h5_msg_flags {
	H5_MSG_CONSTANT = 1 << 0,
	H5_MSG_SHARED = 1 << 1,
	H5_MSG_DONT_SHARE = 1 << 2,
	H5_MSG_MUST_KNOW = 1 << 7, /* a reader that does not know the type must fail */
};

#endif
