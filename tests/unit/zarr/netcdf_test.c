/* SPDX-License-Identifier: Apache-2.0 */
/* The markup of a netCDF-4 file, and committed types. */
#include "zarr_store.h"

#include <zarr/zarr.h>

#define ARRAY(shape, type)                                                                         \
	"{\"zarr_format\":2,\"shape\":" shape ",\"chunks\":" shape ",\"dtype\":\"" type "\"}"
#define NAMES(list) "{\"_ARRAY_DIMENSIONS\":" list ",\"u\":1}"

static void dimensions_are_scales(void **state)
{
	static const struct store_doc docs[] = {
		{".zgroup", "{}"},
		{".zattrs", "{\"title\":\"t\"}"},
		{"x/.zarray", ARRAY("[3]", "<f8")},
		{"x/.zattrs", NAMES("[\"x\"]")},
		{"z/.zarray", ARRAY("[2,3]", "<f4")},
		{"z/.zattrs", NAMES("[\"z\",\"x\"]")},
		{"g/v/.zarray", ARRAY("[3,7,3]", "|u1")},
		{"g/v/.zattrs", NAMES("[\"x\",\"y\",\"x\"]")},
		{"s/.zarray", ARRAY("[]", "<i2")},
		{"w/.zarray", ARRAY("[3]", "<i2")},
		{"w/.zattrs", NAMES("[\"x\"]")},
		{NULL, NULL},
	};
	assert_store(docs, true,
		     "group /\n"
		     "  @title \"t\"\n"
		     "  @_NCProperties\n"
		     "group /g\n"
		     "g/y (7) dimension\n"
		     "  @CLASS \"DIMENSION_SCALE\"\n"
		     "  @NAME \"This is a netCDF dimension but not a netCDF variable.         7\"\n"
		     "  @_Netcdf4Dimid int32 scalar 2\n"
		     "  @REFERENCE_LIST  {g/v 1}\n"
		     "g/v (3,7,3) chunk(3,7,3) uint8\n"
		     "  @u int32 1\n"
		     "  @_Netcdf4Coordinates int32 0 2 0\n"
		     "  @DIMENSION_LIST x g/y x\n"
		     "s () int16\n"
		     "w (3) chunk(3) int16\n"
		     "  @u int32 1\n"
		     "  @_Netcdf4Coordinates int32 0\n"
		     "  @DIMENSION_LIST x\n"
		     "x (3) chunk(3) float64\n"
		     "  @CLASS \"DIMENSION_SCALE\"\n"
		     "  @NAME \"x\"\n"
		     "  @_Netcdf4Dimid int32 scalar 0\n"
		     "  @u int32 1\n"
		     "  @REFERENCE_LIST  {w 0} {g/v 0} {g/v 2}\n"
		     "z (2,3) chunk(2,3) float32\n"
		     "  @CLASS \"DIMENSION_SCALE\"\n"
		     "  @NAME \"z\"\n"
		     "  @_Netcdf4Dimid int32 scalar 1\n"
		     "  @u int32 1\n"
		     "  @_Netcdf4Coordinates int32 1 0\n");
}

/* libnetcdf sees no dimension if CLASS has another type. */
static void the_class_has_sixteen_bytes(void **state)
{
	static const struct store_doc docs[] = {
		{".zgroup", "{}"}, {"a/.zarray", ARRAY("[3]", "|i1")}, {NULL, NULL}};
	struct store s;
	store_load(&s, docs);
	const struct object *root = &tree_object(s.tree, 0)->o;
	const struct object *d = &tree_object(s.tree, root->group.links[0].target)->o;
	assert_string_equal(d->attrs[0].name, "CLASS");
	assert_int_equal(d->attrs[0].type->size, 16);
	assert_int_equal(d->attrs[0].type->string.pad, DTYPE_PAD_NULLTERM);
	assert_int_equal(d->attrs[0].space.cls, DSPACE_SCALAR);
	assert_int_equal(d->attrs[1].type->size, 64);
	assert_int_equal(d->dataset.requested, LAYOUT_CONTIGUOUS);
	assert_int_equal(d->dataset.type->size, 4);
	assert_true(d->dataset.type->floating.big_endian);
	assert_false(d->dataset.fill_defined);
	assert_true(root->group.links_ordered);
	assert_true(root->attrs_ordered);
	store_end(&s);
}

static void complex_types_are_committed_if_they_are_used(void **state)
{
	static const struct store_doc docs[] = {
		{".zgroup", "{}"},
		{"a/.zarray", ARRAY("[3]", "<c8")},
		{"a/.zattrs", NAMES("[\"_Complex64\"]")},
		{"b/.zarray", ARRAY("[3]", ">c8")},
		{"c/.zarray", "{\"shape\":[3],\"chunks\":[0],\"dtype\":\"<c16\"}"},
		{"_Complex64_t1/.zgroup", "{}"},
		{"d/.zarray", ARRAY("[3]", "<c16")},
		{NULL, NULL},
	};
	assert_store(docs, false,
		     "group /\n"
		     "_Complex64_t2 type\n"
		     "_Complex64_big type\n"
		     "_Complex128 type\n"
		     "_Complex64 (3) dimension\n"
		     "_Anonymous_Dim_3 (3) dimension\n"
		     "group /_Complex64_t1\n"
		     "a (3) chunk(3) _Complex64\n"
		     "  @u int32 1\n"
		     "b (3) chunk(3) _Complex64_big\n"
		     "d (3) chunk(3) _Complex128\n"
		     "note: c/.zarray: the chunk length of dimension 0 is 0\n");
}

/* The datasets of dimensions have no data, whatever their length. */
static void dimensions_may_be_empty_or_long(void **state)
{
	static const struct store_doc docs[] = {
		{".zgroup", "{}"},
		{"a/.zarray", "{\"shape\":[0,5,3000000],\"chunks\":[1,5,7],\"dtype\":\"|u1\"}"},
		{NULL, NULL},
	};
	static const uint32_t chunks[] = {1, 5, 1 << 20};
	static const uint64_t lengths[] = {0, 5, 3000000}, counts[] = {0, 1, 3};
	struct store s;
	store_load(&s, docs);
	const struct object *root = &tree_object(s.tree, 0)->o;
	for (uint32_t i = 0; i < 3; i++) {
		const struct object *o = &tree_object(s.tree, root->group.links[i].target)->o;
		const struct dataset *d = &o->dataset;
		assert_int_equal(d->space.dims[0], lengths[i]);
		assert_int_equal(d->grid.chunk[0], chunks[i]);
		assert_int_equal(d->grid.nchunks, counts[i]);
		assert_int_equal(d->alloc_time, ALLOC_TIME_LATE);
		assert_int_equal(d->fill_time, FILL_TIME_IFSET);
		assert_int_equal(d->committed, OBJECT_NONE);
		assert_int_equal(codec_chunk_size(d->chain).plain, UINT64_C(4) * chunks[i]);
		assert_int_equal(codec_chunk_size(d->chain).exact, UINT64_C(4) * chunks[i]);
	}
	store_end(&s);
}

/* How the layout of a dataset would have been requested of libhdf5. */
static void arrays_have_chunks_and_scalars_have_none(void **state)
{
	static const struct store_doc docs[] = {
		{".zgroup", "{}"},
		{"a/.zarray", ARRAY("[3]", "<i4")},
		{"s/.zarray", "{\"shape\":[],\"chunks\":[],\"dtype\":\"<i4\","
			      "\"compressor\":{\"id\":\"zlib\"},\"fill_value\":3}"},
		{NULL, NULL},
	};
	struct store s;
	store_load(&s, docs);
	const struct object *root = &tree_object(s.tree, 0)->o;
	const struct dataset *a = &tree_object(s.tree, root->group.links[1].target)->o.dataset;
	const struct dataset *scalar = &tree_object(s.tree, root->group.links[2].target)->o.dataset;
	assert_int_equal(a->requested, LAYOUT_CHUNKED);
	assert_int_equal(a->alloc_time, ALLOC_TIME_INCR);
	assert_int_equal(a->fill_time, FILL_TIME_IFSET);
	assert_int_equal(scalar->requested, LAYOUT_CONTIGUOUS);
	assert_int_equal(scalar->alloc_time, ALLOC_TIME_LATE);
	assert_int_equal(scalar->fill_time, FILL_TIME_IFSET);
	assert_int_equal(scalar->grid.nchunks, 1);
	assert_int_equal(scalar->nfilters, 0); /* only chunks have filters */
	assert_string_equal(zarr2_ops.codecs(&tree_object(s.tree, root->group.links[2].target)->o),
			    "zlib");
	store_end(&s);
}

/* A type is a link only if a variable that is shown has it. */
static void other_complex_types_are_not_linked(void **state)
{
	static const struct store_doc one[] = {
		{".zgroup", "{}"}, {"a/.zarray", ARRAY("[3]", "<c8")}, {NULL, NULL}};
	static const struct store_doc refused[] = {
		{".zgroup", "{}"},
		{"a/.zarray", ARRAY("[3]", "<c8")},
		{"z/.zarray", ARRAY("[6]", "<c16")},
		{"_Anonymous_Dim_6/.zgroup", "{}"},
		{NULL, NULL},
	};
	assert_store(one, false,
		     "group /\n"
		     "_Complex64 type\n"
		     "_Anonymous_Dim_3 (3) dimension\n"
		     "a (3) chunk(3) _Complex64\n");
	assert_store(refused, false,
		     "group /\n"
		     "_Complex64 type\n"
		     "_Anonymous_Dim_3 (3) dimension\n"
		     "group /_Anonymous_Dim_6\n"
		     "a (3) chunk(3) _Complex64\n"
		     "note: z: no name is free for one of its dimensions\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dimensions_are_scales),
		cmocka_unit_test(the_class_has_sixteen_bytes),
		cmocka_unit_test(complex_types_are_committed_if_they_are_used),
		cmocka_unit_test(dimensions_may_be_empty_or_long),
		cmocka_unit_test(arrays_have_chunks_and_scalars_have_none),
		cmocka_unit_test(other_complex_types_are_not_linked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
