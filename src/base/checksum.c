/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two checksums of the HDF5 file format: Bob Jenkins' lookup3 (metadata of version 2 and
 * later, name hashes) and the fletcher32 of the filter fletcher32. Pure; any thread.
 */
#include <base/checksum.h>

static uint32_t rotate(uint32_t v, unsigned int k)
{
	return v << k | v >> (32 - k);
}

/* Loads n <= 4 bytes, little-endian, with zeros above them. */
static uint32_t load(const uint8_t *p, size_t n)
{
	uint32_t v = 0;
	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

struct lookup3 {
	uint32_t a, b, c;
};

/* This is lookup3's mix(), called after each 12 bytes except the last ones. */
static void mix(struct lookup3 *s)
{
	uint32_t a = s->a, b = s->b, c = s->c;
	a = (a - c) ^ rotate(c, 4), c += b;
	b = (b - a) ^ rotate(a, 6), a += c;
	c = (c - b) ^ rotate(b, 8), b += a;
	a = (a - c) ^ rotate(c, 16), c += b;
	b = (b - a) ^ rotate(a, 19), a += c;
	c = (c - b) ^ rotate(b, 4), b += a;
	*s = (struct lookup3){a, b, c};
}

static size_t at_most(size_t n, size_t limit)
{
	return n < limit ? n : limit;
}

/* Adds 1 to 12 bytes. */
static void add(struct lookup3 *s, const uint8_t *p, size_t n)
{
	s->a += load(p, at_most(n, 4));
	if (n > 4)
		s->b += load(p + 4, at_most(n - 4, 4));
	if (n > 8)
		s->c += load(p + 8, at_most(n - 8, 4));
}

uint32_t checksum_lookup3(const void *bytes, size_t n, uint32_t init)
{
	const uint8_t *p = bytes;
	uint32_t seed = 0xdeadbeef + (uint32_t)n + init;
	struct lookup3 s = {seed, seed, seed};
	if (n == 0)
		return s.c;
	for (; n > 12; p += 12, n -= 12) {
		add(&s, p, 12);
		mix(&s);
	}
	add(&s, p, n);
	/* This is lookup3's final(), called after the last 1 to 12 bytes. */
	uint32_t a = s.a, b = s.b, c = s.c;
	c = (c ^ b) - rotate(b, 14);
	a = (a ^ c) - rotate(c, 11);
	b = (b ^ a) - rotate(a, 25);
	c = (c ^ b) - rotate(b, 16);
	a = (a ^ c) - rotate(c, 4);
	b = (b ^ a) - rotate(a, 14);
	c = (c ^ b) - rotate(b, 24);
	return c;
}

/* Reduces modulo 65535 to 16 bits and a carry; twice gives 16 bits. Zero stays zero, other
 * multiples of 65535 become 65535: HDF5's result depends on it. */
static uint32_t fold(uint32_t v)
{
	return (v & 0xffff) + (v >> 16);
}

uint32_t checksum_fletcher32(const void *bytes, size_t n)
{
	/* The longest run of words whose second sum stays inside 32 bits. */
	enum { RUN = 360 };
	const uint8_t *p = bytes;
	size_t words = n / 2;
	uint32_t sum1 = 0, sum2 = 0;
	while (words > 0) {
		size_t run = at_most(words, RUN);
		words -= run;
		for (; run > 0; run--, p += 2) {
			sum1 += (uint32_t)p[0] << 8 | p[1];
			sum2 += sum1;
		}
		sum1 = fold(sum1);
		sum2 = fold(sum2);
	}
	if (n % 2) {
		sum1 += (uint32_t)*p << 8;
		sum2 += sum1;
		sum1 = fold(sum1);
		sum2 = fold(sum2);
	}
	return fold(sum2) << 16 | fold(sum1);
}
