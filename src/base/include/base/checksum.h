/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of the HDF5 file format and of the journal. */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Computes Bob Jenkins' lookup3 hashlittle() as HDF5 uses it. init is 0 for metadata checksums and
 * for the name hashes of links and attributes. */
uint32_t checksum_lookup3(const void *bytes, size_t n, uint32_t init);

/* Computes HDF5's fletcher32 (filter 3) over 16-bit big-endian words. An odd last byte is the high
 * half of a word. The filter stores the result little-endian after the data. */
uint32_t checksum_fletcher32(const void *bytes, size_t n);

/* Returns the CRC-32C (Castagnoli) of the bytes so far and of n more. crc is the CRC of the bytes
 * so far, at first 0. Uses the instructions of the processor, if it has them. */
uint32_t checksum_crc32c(const void *bytes, size_t n, uint32_t crc);
/* The same without such instructions. */
uint32_t checksum_crc32c_portable(const void *bytes, size_t n, uint32_t crc);
/* Returns the CRC-32C after n more bytes that are zero. n < 2^32. */
uint32_t checksum_crc32c_zeros(size_t n, uint32_t crc);
/* `difference` is the exclusive or of the CRC-32Cs of two byte strings of equal length. Returns
 * what it becomes if the same n bytes follow both. n < 2^32. */
uint32_t checksum_crc32c_shift(uint32_t difference, size_t n);
/* The same without instructions for it. */
uint32_t checksum_crc32c_shift_portable(uint32_t difference, size_t n);

#endif
