/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 (RFC 1321) in the lanes of a vector: see md5_many.h. */
#include "md5_many.h"

#include <endian.h>
#include <string.h>

enum { WORDS = 4, BLOCK = 64, BLOCK_WORDS = BLOCK / 4, LENGTH_AT = 56 };

struct md5_state {
	uint32_t word[WORDS][MD5_LANES_MAX];
};

/* RFC 1321, 3.4: the integer part of 2^32 * |sin(i + 1)|. */
static const uint32_t sine[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

#define F(b, c, d)    ((d) ^ ((b) & ((c) ^ (d))))
#define G(b, c, d)    ((c) ^ ((d) & ((b) ^ (c))))
#define H(b, c, d)    ((b) ^ (c) ^ (d))
#define I(b, c, d)    ((c) ^ ((b) | ~(d)))
#define ROTATE(x, by) (((x) << (by)) | ((x) >> (32 - (by))))
#define STEP(f, a, b, c, d, i, word, by)                                                           \
	a += f(b, c, d) + m[(word) % BLOCK_WORDS] + sine[i];                                       \
	a = ROTATE(a, by) + b

/* Four steps from the i-th on; the words that they take are `by` apart. */
#define FOUR(f, i, word, by, r0, r1, r2, r3)                                                       \
	STEP(f, a, b, c, d, i, word, r0);                                                          \
	STEP(f, d, a, b, c, (i) + 1, (word) + (by), r1);                                           \
	STEP(f, c, d, a, b, (i) + 2, (word) + 2 * (by), r2);                                       \
	STEP(f, b, c, d, a, (i) + 3, (word) + 3 * (by), r3)
#define ROUND(f, i, word, by, r0, r1, r2, r3)                                                      \
	FOUR(f, i, word, by, r0, r1, r2, r3);                                                      \
	FOUR(f, (i) + 4, (word) + 4 * (by), by, r0, r1, r2, r3);                                   \
	FOUR(f, (i) + 8, (word) + 8 * (by), by, r0, r1, r2, r3);                                   \
	FOUR(f, (i) + 12, (word) + 12 * (by), by, r0, r1, r2, r3)

/* Turning a square of words about: in the stage of h, rows i and i + h (i without h) exchange what
 * is h apart in them. */
#define LOW(p, h, n)	    (((p) & (h)) ? (n) + (p) - (h) : (p))
#define HIGH(p, h, n)	    (((p) & (h)) ? (n) + (p) : (p) + (h))
#define EACH4(of, p, h, n)  of(p, h, n), of((p) + 1, h, n), of((p) + 2, h, n), of((p) + 3, h, n)
#define EACH8(of, p, h, n)  EACH4(of, p, h, n), EACH4(of, (p) + 4, h, n)
#define EACH16(of, p, h, n) EACH8(of, p, h, n), EACH8(of, (p) + 8, h, n)
#define STAGE(rows, h, n)                                                                          \
	for (unsigned int i = 0; i < (n); i++) {                                                   \
		const vector##n x = (rows)[i], y = (rows)[(i + (h)) % (n)];                        \
		if (i & (h))                                                                       \
			continue;                                                                  \
		(rows)[i] = __builtin_shufflevector(x, y, EACH##n(LOW, 0, h, n));                  \
		(rows)[i + (h)] = __builtin_shufflevector(x, y, EACH##n(HIGH, 0, h, n));           \
	}
#define TURN4(rows)                                                                                \
	STAGE(rows, 1, 4)                                                                          \
	STAGE(rows, 2, 4)
#define TURN8(rows)                                                                                \
	STAGE(rows, 1, 8)                                                                          \
	STAGE(rows, 2, 8)                                                                          \
	STAGE(rows, 4, 8)
#define TURN16(rows)                                                                               \
	STAGE(rows, 1, 16)                                                                         \
	STAGE(rows, 2, 16)                                                                         \
	STAGE(rows, 4, 16)                                                                         \
	STAGE(rows, 8, 16)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_ENDIAN_WORDS(v) (v)
#else
#define LITTLE_ENDIAN_WORDS(v) ((v) << 24 | ((v)&0xff00) << 8 | ((v) >> 8 & 0xff00) | (v) >> 24)
#endif

/* The block function for vectors of so many lanes. Lane l of m[w] is word w of body l's block. */
#define DEFINE_BLOCKS(lanes, attributes)                                                           \
	typedef uint32_t vector##lanes __attribute__((vector_size(4 * (lanes))));                  \
	attributes static void blocks##lanes(struct md5_state *state, const uint8_t *const *at,    \
					     size_t nblocks)                                       \
	{                                                                                          \
		vector##lanes s[WORDS], m[BLOCK_WORDS], a, b, c, d;                                \
		for (unsigned int w = 0; w < WORDS; w++)                                           \
			memcpy(&s[w], state->word[w], sizeof(s[w]));                               \
		for (size_t n = 0; n < nblocks; n++) {                                             \
			for (unsigned int w = 0; w < BLOCK_WORDS; w += (lanes)) {                  \
				for (unsigned int l = 0; l < (lanes); l++) {                       \
					memcpy(&a, at[l] + n * BLOCK + w * 4, sizeof(a));          \
					m[w + l] = LITTLE_ENDIAN_WORDS(a);                         \
				}                                                                  \
				TURN##lanes(m + w)                                                 \
			}                                                                          \
			a = s[0], b = s[1], c = s[2], d = s[3];                                    \
			ROUND(F, 0, 0, 1, 7, 12, 17, 22);                                          \
			ROUND(G, 16, 1, 5, 5, 9, 14, 20);                                          \
			ROUND(H, 32, 5, 3, 4, 11, 16, 23);                                         \
			ROUND(I, 48, 0, 7, 6, 10, 15, 21);                                         \
			s[0] += a, s[1] += b, s[2] += c, s[3] += d;                                \
		}                                                                                  \
		for (unsigned int w = 0; w < WORDS; w++)                                           \
			memcpy(state->word[w], &s[w], sizeof(s[w]));                               \
	}

DEFINE_BLOCKS(4, )

static bool anywhere(void)
{
	return true;
}

#ifdef __x86_64__
DEFINE_BLOCKS(8, __attribute__((target("avx2"))))
DEFINE_BLOCKS(16, __attribute__((target("avx512f"))))

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}
#endif

const struct md5_kernel md5_kernels[] = {
#ifdef __x86_64__
	{.lanes = 16, .least = 2, .usable = has_avx512, .blocks = blocks16},
	{.lanes = 8, .least = 3, .usable = has_avx2, .blocks = blocks8},
#endif
	{.lanes = 4, .least = 2, .usable = anywhere, .blocks = blocks4},
};
const size_t md5_nkernels = sizeof(md5_kernels) / sizeof(md5_kernels[0]);

const struct md5_kernel *md5_widest(void)
{
	const struct md5_kernel *k = md5_kernels;
	while (!k->usable())
		k++;
	return k;
}

/* RFC 1321, 3.1 and 3.2: the rest, 0x80, zeros, the length in bits. Returns the blocks. */
static size_t pad(uint8_t last[2 * BLOCK], const uint8_t *body, size_t len)
{
	const size_t rest = len % BLOCK, nblocks = rest < LENGTH_AT ? 1 : 2;
	const uint64_t bits = htole64((uint64_t)len * 8);
	memset(last, 0, 2 * BLOCK);
	if (rest)
		memcpy(last, body + len - rest, rest);
	last[rest] = 0x80;
	memcpy(last + (nblocks - 1) * BLOCK + LENGTH_AT, &bits, sizeof(bits));
	return nblocks;
}

void md5_many(const struct md5_kernel *k, const void *const *bodies, unsigned int n, size_t len,
	      uint8_t (*out)[MD5_SIZE])
{
	/* RFC 1321, 3.3 */
	static const uint32_t start[WORDS] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	struct md5_state state;
	const uint8_t *at[MD5_LANES_MAX];
	uint8_t last[MD5_LANES_MAX][2 * BLOCK];
	size_t nlast = 0;
	for (unsigned int w = 0; w < WORDS; w++)
		for (unsigned int l = 0; l < k->lanes; l++)
			state.word[w][l] = start[w];
	/* Lanes without a body do the first again. */
	for (unsigned int l = 0; l < k->lanes; l++)
		at[l] = bodies[l < n ? l : 0];
	if (len >= BLOCK)
		k->blocks(&state, at, len / BLOCK);
	for (unsigned int l = 0; l < k->lanes; l++) {
		nlast = pad(last[l], at[l], len);
		at[l] = last[l];
	}
	k->blocks(&state, at, nlast);
	for (unsigned int l = 0; l < n; l++)
		for (unsigned int w = 0; w < WORDS; w++) {
			const uint32_t word = htole32(state.word[w][l]);
			memcpy(out[l] + w * sizeof(word), &word, sizeof(word));
		}
}
