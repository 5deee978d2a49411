/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the attribute _FillValue, the value that programs mask. It has the type of the variable,
 * because libnetcdf refuses any other. In Zarr v3, xarray stores this attribute, and fill_value is
 * only what chunks that are not stored contain. In v2, programs mask the fill_value of an array
 * that has names of dimensions. Pure.
 */
#include "model_internal.h"

#include <errno.h>
#include <math.h>

#include <data/number.h>

static uint64_t default_bits(const struct zarr_element *e)
{
	const uint64_t most = UINT64_MAX >> (64 - 8 * e->size);
	if (e->kind == ZARR_UINT)
		return e->size == 8 ? most - 1 : most;
	const uint64_t least = (most >> 1) + 1; /* as bits; -128 and so on */
	return e->size == 8 ? least + 2 : least + 1;
}

/* Returns true for netCDF's default fill value of the type, which programs mask anyway. */
static bool is_default(const struct zarr_element *e, const uint8_t *bytes)
{
	const double fill = 9.9692099683868690e+36;
	if (e->kind != ZARR_FLOAT)
		return number_get_int(bytes, e->size, e->big_endian) == default_bits(e);
	const double real = number_get_float(bytes, e->size, e->big_endian);
	return fabs(real / fill - 1) < 1e-5; /* it was written with six digits */
}

/* Returns true if _FillValue follows from fill_value. In v3, an empty text is a fill value only of
 * characters, which are unsigned bytes. */
static bool is_derived(const struct zarr_array *a)
{
	const enum zarr_kind kind = a->element.kind;
	const char *text = json_string_value(a->fill);
	return a->derives_fill && kind != ZARR_BOOL && kind != ZARR_COMPLEX &&
	       !(a->is_v3 && text && !text[0] && !(kind == ZARR_UINT && a->element.size == 1));
}

int zarr_fill_attribute(struct zarr_build *b, const json_t *stored, const struct zarr_array *a,
			struct attribute *out, bool *done, struct err *err)
{
	const struct zarr_element shown = zarr_element_shown(&a->element);
	const bool is_v3 = stored ? true : a->is_v3; /* all forms of text */
	uint8_t bytes[ZARR_FILL_BYTES];
	struct err why = ERR_INIT;
	uint32_t committed;
	*done = false;
	if (!stored && !is_derived(a))
		return 0;
	int rc = zarr_fill(b, stored ? stored : a->fill, &a->element, is_v3, bytes, done, &why);
	if (rc == -EIO && !stored)
		return 0; /* make_fill() in array_dataset.c notes it */
	if (rc)
		return err_set(err, rc, "%s", why.msg);
	if (*done && !stored && a->is_v3 && is_default(&shown, bytes))
		*done = false;
	if (!*done)
		return stored ? err_set(err, -EOPNOTSUPP, "it has no value") : 0;
	const struct dtype *type = zarr_element_type(b, &shown, &committed, err);
	if (!type)
		return -ENOMEM;
	rc = zarr_attribute_plain(b, out, "_FillValue", type, 1, false, bytes, err);
	out->committed = committed;
	return rc;
}
