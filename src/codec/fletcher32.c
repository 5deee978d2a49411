/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the checksum of the filter fletcher32. libhdf5 before 1.6.3 wrote the checksum with the
 * bytes of each half swapped, and readers still accept that form. The function is pure.
 */
#include "fletcher32.h"

#include <errno.h>

#include <base/checksum.h>
#include <base/cursor.h>

int fletcher32_check(const uint8_t *in, size_t n, size_t *data_n, struct err *err)
{
	if (n < FLETCHER32_SIZE)
		return err_set(err, -EIO, "fletcher32: %zu bytes are too few for a checksum", n);
	*data_n = n - FLETCHER32_SIZE;
	struct cursor c = cursor_of(in + *data_n, FLETCHER32_SIZE);
	const uint32_t stored = cur_u32(&c);
	const uint32_t sum = checksum_fletcher32(in, *data_n);
	const uint32_t swapped = (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
	if (stored != sum && stored != swapped)
		return err_set(err, -EIO,
			       "fletcher32: the checksum is %08x, that of the data is %08x", stored,
			       sum);
	return 0;
}
