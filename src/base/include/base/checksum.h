/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of the HDF5 file format and of the journal. */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Bob Jenkins' lookup3 hashlittle(), as HDF5 uses it: init 0 for metadata checksums and for the
 * name hashes of links and attributes. */
uint32_t checksum_lookup3(const void *bytes, size_t n, uint32_t init);

/* HDF5's fletcher32 (filter 3): 16-bit big-endian words; an odd last byte is the high half of a
 * word. The filter stores the result little-endian after the data. */
uint32_t checksum_fletcher32(const void *bytes, size_t n);

/* CRC-32C (Castagnoli) of n more bytes after those whose CRC is crc; 0 at first. Uses the
 * instructions of the processor, if it has them. */
uint32_t checksum_crc32c(const void *bytes, size_t n, uint32_t crc);
/* The same without such instructions. */
uint32_t checksum_crc32c_portable(const void *bytes, size_t n, uint32_t crc);
/* CRC-32C of n more bytes that are zero. n < 2^32. */
uint32_t checksum_crc32c_zeros(size_t n, uint32_t crc);
/* What `difference`, the exclusive or of the CRC-32Cs of two byte strings of equal length, becomes
 * if the same n bytes follow both. n < 2^32. */
uint32_t checksum_crc32c_shift(uint32_t difference, size_t n);
/* The same without instructions for it. */
uint32_t checksum_crc32c_shift_portable(uint32_t difference, size_t n);

#endif
