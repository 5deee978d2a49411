/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts one element from its JSON forms, for fill_value of v2 and v3 and for _FillValue:
 *
 *   integer  5, 5.0, "5", [5], true (1), "" (0)
 *   float    1.5, NaN, "NaN", "Infinity", "-9.5", [1.5], "" (0); the base64 text of a little-endian
 *            double; in v3 also the bits as "0x7fc00000"
 *   complex  [re, im], in which both are forms of a float; or one form of a float
 *   bool     true, "true", 1
 *
 * Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <base/hex.h>
#include <data/number.h>
#include <json/base64.h>
#include <json/numbers.h>

enum { DOUBLE_BASE64 = 12 /* characters, the last one is "=" */ };

struct filler {
	struct zarr_build *b;
	bool is_v3;
};

/* ---- floats ---- */

/* Parses a text such as "0x7fc00000": the bits of a float of `size` bytes, the highest first. */
static bool parse_bits(const char *s, size_t n, uint32_t size, double *out)
{
	uint8_t bytes[sizeof(uint64_t)];
	uint64_t bits = 0;
	if (n < 3 || s[0] != '0' || (s[1] != 'x' && s[1] != 'X') || n - 2 > 2 * (size_t)size)
		return false;
	for (size_t i = 2; i < n; i++) {
		const int digit = hex_digit(s[i]);
		if (digit < 0)
			return false;
		bits = bits << 4 | (uint64_t)digit;
	}
	number_put_int(bytes, size, false, bits);
	*out = number_get_float(bytes, size, false);
	return true;
}

/* Parses xarray's form of a float in Zarr v3, the base64 text of a little-endian double. */
static bool parse_base64(struct zarr_build *b, const char *s, size_t n, double *out)
{
	auto_bytes struct bytes decoded = {0};
	if (n != DOUBLE_BASE64 || s[n - 1] != '=')
		return false;
	const int rc = base64_decode(s, n, &decoded);
	b->is_short = b->is_short || rc == -ENOMEM;
	if (rc || decoded.len != sizeof(*out))
		return false;
	*out = number_get_float(decoded.data, sizeof(*out), false);
	return true;
}

static bool parse_float(const struct filler *f, const json_t *v, uint32_t size, double *out)
{
	struct zarr_integer i;
	struct json_string text;
	struct json_number number;
	if (zarr_number(f->b, v, &i, out) != ZARR_NO_NUMBER)
		return true;
	if (!json_is_string(v) || zarr_string(f->b, v, &text, NULL))
		return false;
	if (f->is_v3 && parse_bits(text.s, text.n, size, out))
		return true;
	if (parse_base64(f->b, text.s, text.n, out))
		return true;
	*out = 0;
	if (text.n == 0)
		return true;
	if (text.n > 1 && text.s[0] == '-' && strcasecmp(text.s, "-nan") == 0) {
		*out = NAN;
		return true;
	}
	if (!json_number_text(text.s, text.n, &number))
		return false;
	*out = number.real;
	return true;
}

static bool fill_complex(const struct filler *f, const json_t *v, const struct zarr_element *e,
			 uint8_t *out)
{
	const uint32_t half = e->size / 2;
	const bool is_pair = json_is_array(v);
	double part[2] = {0, 0};
	if (is_pair && json_array_size(v) != 2)
		return false;
	for (size_t i = 0; i < (is_pair ? 2 : 1); i++)
		if (!parse_float(f, is_pair ? json_array_get(v, i) : v, half, &part[i]))
			return false;
	for (uint32_t i = 0; i < 2; i++)
		number_put_float(out + i * half, half, e->big_endian, part[i]);
	return true;
}

/* ---- integers ---- */

static bool real_integer(double real, struct zarr_integer *out)
{
	const double magnitude = fabs(real);
	if (!(magnitude < 0x1p64) || magnitude != floor(magnitude))
		return false;
	*out = (struct zarr_integer){
		.negative = real < 0,
		.fits = true,
		.magnitude = (uint64_t)magnitude,
	};
	return true;
}

static bool parse_integer(const struct filler *f, const json_t *v, struct zarr_integer *out)
{
	struct json_string text;
	struct json_number number;
	double real;
	switch (zarr_number(f->b, v, out, &real)) {
	case ZARR_INTEGER:
		return true;
	case ZARR_REAL:
		return real_integer(real, out);
	case ZARR_NO_NUMBER:
		break;
	}
	if (json_is_boolean(v)) {
		*out = (struct zarr_integer){.fits = true, .magnitude = json_is_true(v)};
		return true;
	}
	if (!json_is_string(v) || zarr_string(f->b, v, &text, NULL))
		return false;
	*out = (struct zarr_integer){.fits = true};
	if (text.n == 0 || zarr_integer_text(text.s, text.n, out))
		return true;
	return json_number_text(text.s, text.n, &number) && real_integer(number.real, out);
}

static bool fill_integer(const struct filler *f, const json_t *v, const struct zarr_element *e,
			 uint8_t *out)
{
	const uint32_t bits = 8 * e->size;
	struct zarr_integer i;
	if (!parse_integer(f, v, &i) || !i.fits)
		return false;
	/* The least value of a signed type has the magnitude 2^(bits-1). */
	const uint64_t sign = UINT64_C(1) << (bits - 1);
	const uint64_t most = e->kind == ZARR_UINT ? sign - 1 + sign : sign - 1;
	const uint64_t least = e->kind == ZARR_UINT ? 0 : sign;
	if (i.magnitude > (i.negative ? least : most))
		return false;
	number_put_int(out, e->size, e->big_endian, i.negative ? 0 - i.magnitude : i.magnitude);
	return true;
}

static bool fill_bool(const struct filler *f, const json_t *v, uint8_t *out)
{
	struct zarr_integer i;
	if (json_is_string(v) && strcmp(json_string_value(v), "true") == 0) {
		out[0] = 1;
		return true;
	}
	if (json_is_string(v) && strcmp(json_string_value(v), "false") == 0) {
		out[0] = 0;
		return true;
	}
	if (!parse_integer(f, v, &i) || i.negative || i.magnitude > 1)
		return false;
	out[0] = (uint8_t)i.magnitude;
	return true;
}

/* ---- any type ---- */

static bool convert(const struct filler *f, const json_t *v, const struct zarr_element *e,
		    uint8_t *out)
{
	double real;
	switch (e->kind) {
	case ZARR_BOOL:
		return fill_bool(f, v, out);
	case ZARR_INT:
	case ZARR_UINT:
		return fill_integer(f, v, e, out);
	case ZARR_FLOAT:
		if (!parse_float(f, v, e->size, &real))
			return false;
		number_put_float(out, e->size == 2 ? 4 : e->size, e->big_endian, real);
		return true;
	case ZARR_COMPLEX:
		return fill_complex(f, v, e, out);
	}
	return false;
}

/* Returns the name of the type for messages: "int16". */
static const char *type_name(const struct zarr_element *e, char out[16])
{
	static const char *const names[] = {
		[ZARR_BOOL] = "bool",	[ZARR_INT] = "int",	    [ZARR_UINT] = "uint",
		[ZARR_FLOAT] = "float", [ZARR_COMPLEX] = "complex",
	};
	if (e->kind == ZARR_BOOL)
		snprintf(out, 16, "%s", names[e->kind]);
	else
		snprintf(out, 16, "%s%u", names[e->kind], 8 * e->size);
	return out;
}

int zarr_fill(struct zarr_build *b, const json_t *v, const struct zarr_element *e, bool is_v3,
	      uint8_t out[ZARR_FILL_BYTES], bool *defined, struct err *err)
{
	const struct filler f = {.b = b, .is_v3 = is_v3};
	char brief[84], type[16];
	*defined = false;
	if (json_is_array(v) && json_array_size(v) == 1)
		v = json_array_get(v, 0); /* netCDF-C up to 4.8.0 */
	if (!v || json_is_null(v))
		return 0;
	memset(out, 0, ZARR_FILL_BYTES);
	if (!convert(&f, v, e, out))
		return err_set(err, -EIO, "%s does not fit %s", zarr_json_brief(b, v, brief),
			       type_name(e, type));
	*defined = true;
	return 0;
}
