/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte shuffle. For elements of 2, 4 and 8 bytes it is as fast as the memory.
 *
 * Sixteen elements of 2^k bytes are 2^k vectors of 16 bytes. The position of a byte in them has the
 * bits eeee b..b: 4 bits for the element, k bits for the byte in the element. Shuffling moves the
 * byte to position b..b eeee. Interleaving the first half of the vectors with the second half
 * rotates the bits of every position left by one. So four such rounds shuffle 16 elements, and k
 * rounds unshuffle them. Every vector unit has the two instructions for it, "interleave low" and
 * "interleave high". Elements of other sizes are copied byte by byte.
 */
#include <data/shuffle.h>

#include <string.h>

typedef uint8_t vec __attribute__((vector_size(16)));

enum { LANES = 16, SHUFFLE_ROUNDS = 4 };

static inline __attribute__((always_inline)) vec interleave_low(vec a, vec b)
{
	return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
				       23);
}

static inline __attribute__((always_inline)) vec interleave_high(vec a, vec b)
{
	return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
				       15, 31);
}

/* Rotates the position bits of n vectors (n a constant power of two, 2 to 8) `rounds` times. */
static inline __attribute__((always_inline)) void rotate(vec *v, size_t n, unsigned int rounds)
{
	vec t[8];
#pragma GCC unroll 4
	for (unsigned int r = 0; r < rounds; r++) {
#pragma GCC unroll 4
		for (size_t i = 0; i < n / 2; i++) {
			t[2 * i] = interleave_low(v[i], v[i + n / 2]);
			t[2 * i + 1] = interleave_high(v[i], v[i + n / 2]);
		}
#pragma GCC unroll 8
		for (size_t i = 0; i < n; i++)
			v[i] = t[i];
	}
}

/* Shuffles whole groups of 16 elements. size is a constant 2, 4 or 8. Returns the number of
 * elements that were shuffled. */
static inline __attribute__((always_inline)) size_t shuffle_groups(uint8_t *to, const uint8_t *from,
								   size_t count, size_t size)
{
	size_t done = 0;
	for (; count - done >= LANES; done += LANES) {
		vec v[8];
		memcpy(v, from + done * size, LANES * size);
		rotate(v, size, SHUFFLE_ROUNDS);
#pragma GCC unroll 8
		for (size_t k = 0; k < size; k++)
			memcpy(to + k * count + done, &v[k], LANES);
	}
	return done;
}

/* `from` is the first byte of the first element, and `stride` the number of elements in each row.
 */
static inline __attribute__((always_inline)) size_t
unshuffle_groups(uint8_t *to, const uint8_t *from, size_t stride, size_t count, size_t size,
		 unsigned int rounds)
{
	size_t done = 0;
	for (; count - done >= LANES; done += LANES) {
		vec v[8];
#pragma GCC unroll 8
		for (size_t k = 0; k < size; k++)
			memcpy(&v[k], from + k * stride + done, LANES);
		rotate(v, size, rounds);
		memcpy(to + done * size, v, LANES * size);
	}
	return done;
}

void shuffle_bytes(uint8_t *to, const uint8_t *from, size_t n, size_t elem_size)
{
	if (elem_size <= 1 || n < elem_size) {
		memcpy(to, from, n);
		return;
	}
	size_t count = n / elem_size;
	size_t done = 0;
	if (elem_size == 2)
		done = shuffle_groups(to, from, count, 2);
	else if (elem_size == 4)
		done = shuffle_groups(to, from, count, 4);
	else if (elem_size == 8)
		done = shuffle_groups(to, from, count, 8);
	for (size_t k = 0; k < elem_size; k++)
		for (size_t i = done; i < count; i++)
			to[k * count + i] = from[i * elem_size + k];
	memcpy(to + count * elem_size, from + count * elem_size, n % elem_size);
}

/* Unshuffles whole elements. */
static void unshuffle_elems(uint8_t *to, const uint8_t *from, size_t stride, size_t count,
			    size_t elem_size)
{
	size_t done = 0;
	if (elem_size == 2)
		done = unshuffle_groups(to, from, stride, count, 2, 1);
	else if (elem_size == 4)
		done = unshuffle_groups(to, from, stride, count, 4, 2);
	else if (elem_size == 8)
		done = unshuffle_groups(to, from, stride, count, 8, 3);
	for (size_t k = 0; k < elem_size; k++)
		for (size_t i = done; i < count; i++)
			to[i * elem_size + k] = from[k * stride + i];
}

/* Returns byte `at` of the unshuffled bytes. */
static uint8_t unshuffled_byte(const uint8_t *from, size_t count, size_t elem_size, size_t at)
{
	return at < count * elem_size ? from[at % elem_size * count + at / elem_size] : from[at];
}

void unshuffle_range(uint8_t *to, const uint8_t *from, size_t n, size_t elem_size, size_t at,
		     size_t len)
{
	if (elem_size <= 1 || n < elem_size) {
		memcpy(to, from + at, len);
		return;
	}
	const size_t count = n / elem_size, end = at + len;
	for (; at < end && at % elem_size != 0; at++)
		*to++ = unshuffled_byte(from, count, elem_size, at);
	const size_t first = at / elem_size, whole = end / elem_size;
	if (first < whole) {
		unshuffle_elems(to, from + first, count, whole - first, elem_size);
		to += (whole - first) * elem_size;
		at = whole * elem_size;
	}
	for (; at < end; at++)
		*to++ = unshuffled_byte(from, count, elem_size, at);
}

void unshuffle_bytes(uint8_t *to, const uint8_t *from, size_t n, size_t elem_size)
{
	unshuffle_range(to, from, n, elem_size, 0, n);
}
