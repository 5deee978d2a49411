/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts that refer to HDF5 files, and the places of their chunks. Documents contain ' for ". */
#include "schema_test.h"

#include "schema/hsds/parse_reference.h"

#define TYPE(t)	 "'type':'H5T_STD_" t "'"
#define SHAPE(d) ",'shape':{'class':'H5S_SIMPLE','dims':" d "}"
#define REF(l)	 ",'creationProperties':{'layout':{" l "}}"
#define FILTERS	 "'filters':[{'class':'H5Z_FILTER_DEFLATE','id':1,'level':4,'name':'gzip'}],"

static struct parsed parse(const char *members)
{
	char text[4096];
	snprintf(text, sizeof(text), "%s", members);
	for (char *c = text; *c; c++)
		if (*c == '\'')
			*c = '"';
	return parse_dataset(text);
}

struct found {
	int rc;
	char key[SCHEMA_KEY_MAX + 1];
	struct chunk_place place;
	struct err err;
};

/* step, answer: as in schema_ops.locate. */
static void locate(struct found *f, const struct parsed *p, const struct object *table,
		   uint64_t number, unsigned int step, const struct schema_answer *answer)
{
	*f = (struct found){.err = ERR_INIT};
	f->place = (struct chunk_place){.key = f->key, .room = sizeof(f->key)};
	f->rc = hsds2_locate(&p->o, table, number, &step, answer, &f->place, &f->err);
}

static void contiguous_data_are_cut_into_runs(void **state)
{
	static const struct {
		const char *type, *dims;
		uint64_t nchunks, last_offset, last_length;
	} rows[] = {
		{"I32LE", "[120,200]", 1, 1000, 96000},
		{"I32LE", "[100,1000]", 2, 1000 + 65 * 4000, 35 * 4000},
		{"U8LE", "[600000]", 3, 1000 + 2 * 262144, 600000 - 2 * 262144},
		/* rows of 400,000 bytes: half a row, so that no chunk ends within a row */
		{"I32LE", "[3,100000]", 6, 1000 + 5 * 200000, 200000},
		/* a prime number of elements: whole rows */
		{"I32LE", "[3,100003]", 3, 1000 + 2 * 400012, 400012},
		{"I32LE", "[1,1,70000]", 2, 1000 + 262144, 280000 - 262144},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[512];
		struct found f;
		snprintf(text, sizeof(text),
			 "'type':'H5T_STD_%s','shape':{'class':'H5S_SIMPLE','dims':%s},"
			 "'creationProperties':{" FILTERS "'layout':{'class':'H5D_CONTIGUOUS_REF',"
			 "'file_uri':'b/x.h5','offset':1000,'size':10000000}}",
			 rows[i].type, rows[i].dims);
		struct parsed p = parse(text);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.o.dataset.nfilters, 0);
		assert_int_equal(p.o.dataset.requested, LAYOUT_CONTIGUOUS);
		assert_int_equal(p.o.dataset.grid.nchunks, rows[i].nchunks);
		locate(&f, &p, NULL, 0, 0, NULL);
		assert_int_equal(f.rc, 0);
		assert_int_equal(f.place.offset, 1000);
		assert_string_equal(f.place.file->uri, "b/x.h5");
		locate(&f, &p, NULL, rows[i].nchunks - 1, 0, NULL);
		assert_int_equal(f.place.offset, rows[i].last_offset);
		assert_int_equal(f.place.length, rows[i].last_length);
		parsed_release(&p);
	}
}

static void a_scalar_is_one_range(void **state)
{
	struct found f;
	struct parsed p = parse(TYPE("I64LE") ",'shape':{'class':'H5S_SCALAR'}" REF(
		"'class':'H5D_CONTIGUOUS_REF','file_uri':'b/x','offset':7,'size':8"));
	locate(&f, &p, NULL, 0, 0, NULL);
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.place.offset, 7);
	assert_int_equal(f.place.length, 8);
	parsed_release(&p);
}

static void data_without_a_range_are_absent(void **state)
{
	struct found f;
	struct parsed p = parse(TYPE("I32LE") SHAPE("[4]")
					REF("'class':'H5D_CONTIGUOUS_REF','file_uri':'b/x',"
					    "'offset':0,'size':0"));
	locate(&f, &p, NULL, 0, 0, NULL);
	assert_int_equal(f.rc, 0);
	assert_true(f.place.absent);
	parsed_release(&p);
}

static void a_range_that_is_too_short_is_an_error(void **state)
{
	struct found f;
	struct parsed p = parse(TYPE("I32LE") SHAPE("[4]")
					REF("'class':'H5D_CONTIGUOUS_REF','file_uri':'b/x',"
					    "'offset':0,'size':15"));
	locate(&f, &p, NULL, 0, 0, NULL);
	assert_int_equal(f.rc, -EIO);
	assert_contains(f.err.msg, "the reference has 15 bytes");
	parsed_release(&p);
}

#define CHUNKED(chunks) "'class':'H5D_CHUNKED_REF','file_uri':'b/x','dims':[2,3],'chunks':" chunks

static void chunks_are_listed_in_the_document(void **state)
{
	struct found f;
	struct parsed p = parse(
		TYPE("I32LE") SHAPE("[4,7]") ",'layout':{'class':'H5D_CHUNKED','dims':[4,6]}" REF(
			CHUNKED("{'1_2':[500,20,2],'0_1':[100,24],"
				"'0_0':[0,0],'9_0':[1,1]}")));
	assert_int_equal(p.rc, 0);
	assert_int_equal(p.o.dataset.grid.nchunks, 6); /* the layout's dims do not count */
	assert_null(p.o.dataset.requested_chunk);
	assert_int_equal(p.o.dataset.reference->nchunks, 2);
	locate(&f, &p, NULL, 1, 0, NULL);
	assert_int_equal(f.place.offset, 100);
	assert_int_equal(f.place.length, 24);
	assert_int_equal(f.place.filter_mask, 0);
	locate(&f, &p, NULL, 5, 0, NULL);
	assert_int_equal(f.place.offset, 500);
	assert_int_equal(f.place.filter_mask, 2);
	locate(&f, &p, NULL, 0, 0, NULL);
	assert_int_equal(f.rc, 0);
	assert_true(f.place.absent);
	char prefix[SCHEMA_KEY_MAX];
	assert_int_equal(hsds2_chunk_prefix(&p.o, prefix, sizeof(prefix)), -EOPNOTSUPP);
	parsed_release(&p);
}

static void the_version_of_the_file_is_recorded(void **state)
{
	struct parsed p = parse(TYPE("I32LE") SHAPE("[2,3]") REF(
		CHUNKED("{}") ",'hsmount':{'etag':'abc','size':12345,'h5path':'/a','exact':true}"));
	const struct reference *r = p.o.dataset.reference;
	assert_string_equal(r->file.etag, "abc");
	assert_string_equal(r->file.h5path, "/a");
	assert_int_equal(r->file.size, 12345);
	assert_true(r->exact);
	parsed_release(&p);
	p = parse(TYPE("I32LE") SHAPE("[2,3]") REF(CHUNKED("{}")));
	assert_null(p.o.dataset.reference->file.etag);
	assert_true(p.o.dataset.reference->file.size == UINT64_MAX);
	assert_false(p.o.dataset.reference->exact);
	parsed_release(&p);
}

/* The dataset stays in the domain, and its chunks cannot be read. */
static void damaged_references_are_kept(void **state)
{
	static const struct {
		const char *layout, *why;
	} rows[] = {
		{"'class':'H5D_CONTIGUOUS_REF','offset':0,'size':4", "file_uri: missing"},
		{"'class':'H5D_CONTIGUOUS_REF','file_uri':'','offset':0,'size':4", "file_uri"},
		{"'class':'H5D_CONTIGUOUS_REF','file_uri':7,'offset':0,'size':4", "file_uri"},
		{"'class':'H5D_CONTIGUOUS_REF','file_uri':'a\\u0000b','offset':0,'size':4",
		 "file_uri"},
		{"'class':'H5D_CONTIGUOUS_REF','file_uri':'b/x','offset':-1,'size':4", "range"},
		{"'class':'H5D_CONTIGUOUS_REF','file_uri':'b/x','offset':0,'size':-4", "range"},
		{"'class':'H5D_CONTIGUOUS_REF','file_uri':'b/x','offset':0", "range"},
		{CHUNKED("[]"), "chunks: not an object"},
		{"'class':'H5D_CHUNKED_REF','file_uri':'b/x','dims':[2,3]", "chunks: missing"},
		{CHUNKED("{'0_0':[-1,4]}"), "\"0_0\""},
		{CHUNKED("{'0_0':[1,-4]}"), "\"0_0\""},
		{CHUNKED("{'0_0':[1]}"), "\"0_0\""},
		{CHUNKED("{'0_0':[1,4,-1]}"), "filter mask"},
		{CHUNKED("{'0_0':[9223372036854775807,9223372036854775807],'0_1':4}"), "\"0_1\""},
		{CHUNKED("{'0':[1,4]}"), "2 coordinates"},
		{CHUNKED("{'0_0_0':[1,4]}"), "2 coordinates"},
		{CHUNKED("{'0_-1':[1,4]}"), "2 coordinates"},
		{CHUNKED("{'0_99999999999999999999999':[1,4]}"), "too large"},
		{CHUNKED("{'0_1':[1,4],'0_01':[1,4]}"), "occurs twice"},
		{"'class':'H5D_CHUNKED_REF','file_uri':'b/x','dims':[2],'chunks':{}}},"
		 "'layout':{'dims':[2,3],'more':{",
		 "dimensions"},
		{"'class':'H5D_CHUNKED_REF_INDIRECT','dims':[2,3]", "chunk_table"},
		{"'class':'H5D_CHUNKED_REF_INDIRECT','dims':[2,3],'chunk_table':'" GROUP_ID "'",
		 "chunk_table"},
		{CHUNKED("{}") ",'hsmount':{'size':-3}", "size"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[1024];
		snprintf(text, sizeof(text), TYPE("I32LE") SHAPE("[4,7]") REF("%s"),
			 rows[i].layout);
		struct parsed p = parse(text);
		if (p.rc || !p.o.dataset.reference_damaged || p.o.dataset.reference)
			fail_msg("%s: %d %s", text, p.rc, p.err.msg);
		assert_contains(p.o.dataset.absence_unknown, rows[i].why);
		struct found f;
		locate(&f, &p, NULL, 0, 0, NULL);
		assert_int_equal(f.rc, -EIO);
		assert_contains(f.err.msg, rows[i].why);
		parsed_release(&p);
	}
}

static void a_chunk_of_more_than_256_MiB_is_refused(void **state)
{
	struct found f;
	struct parsed p = parse(TYPE("I32LE") SHAPE("[4,7]") REF(CHUNKED("{'0_0':[0,268435457]}")));
	locate(&f, &p, NULL, 0, 0, NULL);
	assert_int_equal(f.rc, -EIO);
	assert_contains(f.err.msg, "268435457 bytes in its file");
	parsed_release(&p);
}

static void variable_length_data_cannot_be_read(void **state)
{
	struct found f;
	struct parsed p = parse("'type':{'class':'H5T_STRING','length':'H5T_VARIABLE'}" SHAPE(
		"[4,7]") REF(CHUNKED("{'0_0':[0,4]}")));
	assert_int_equal(p.rc, 0);
	locate(&f, &p, NULL, 0, 0, NULL);
	assert_int_equal(f.rc, -EOPNOTSUPP);
	parsed_release(&p);
}

/* ---- tables ---- */

#define FIELD(name, type) "{'name':'" name "','type':" type "}"
#define INT(t)		  "{'class':'H5T_INTEGER','base':'H5T_STD_" t "'}"
#define URI                                                                                        \
	"{'class':'H5T_STRING','charSet':'H5T_CSET_ASCII',"                                        \
	"'length':'H5T_VARIABLE'}"
#define RECORD(fields) "'type':{'class':'H5T_COMPOUND','fields':[" fields "]}"
#define OFFSET	       FIELD("offset", INT("I64LE"))
#define SIZE	       FIELD("size", INT("I32LE"))
#define INDIRECT(more)                                                                             \
	TYPE("I32LE")                                                                              \
	SHAPE("[4,7]")                                                                             \
	REF("'class':'H5D_CHUNKED_REF_INDIRECT','dims':[4,6],'hyper_dims':[2,3],"                  \
	    "'chunk_table':'" DATASET_ID "'" more)
#define IN_ONE_FILE INDIRECT(",'file_uri':'b/x'")

struct pair {
	struct parsed p, table;
};

static struct pair make(const char *dataset, const char *table)
{
	struct pair both = {.p = parse(dataset), .table = parse(table)};
	assert_int_equal(both.p.rc, 0);
	assert_int_equal(both.table.rc, 0);
	return both;
}

static void release(struct pair *both)
{
	parsed_release(&both->p);
	parsed_release(&both->table);
}

static void a_record_has_the_place(void **state)
{
	static const uint8_t one[12] = {0x10, 0x27, [8] = 24};
	struct pair both = make(IN_ONE_FILE, RECORD(OFFSET "," SIZE) SHAPE("[2,3]"));
	struct elems record = {.fixed = {.data = (uint8_t *)(uintptr_t)one, .len = 12}};
	struct schema_answer answer = {.record = &record};
	struct found f;
	locate(&f, &both.p, &both.table.o, 4, 0, NULL);
	assert_int_equal(f.rc, SCHEMA_NEEDS_RECORD);
	assert_int_equal(f.place.record, 4);
	assert_int_equal(f.place.table, 2);
	locate(&f, &both.p, &both.table.o, 4, 1, &answer);
	assert_int_equal(f.rc, 0);
	assert_int_equal(f.place.offset, 10000);
	assert_int_equal(f.place.length, 24);
	assert_string_equal(f.place.file->uri, "b/x");
	/* no record is a record of zeros */
	answer = (struct schema_answer){.absent = true};
	locate(&f, &both.p, &both.table.o, 4, 1, &answer);
	assert_int_equal(f.rc, 0);
	assert_true(f.place.absent);
	/* part of one */
	record.fixed.len = 11;
	answer = (struct schema_answer){.record = &record};
	locate(&f, &both.p, &both.table.o, 4, 1, &answer);
	assert_int_equal(f.rc, -EIO);
	release(&both);
}

static void a_record_may_have_a_length_a_mask_and_a_file(void **state)
{
	const char *types[] = {
		RECORD(FIELD("offset", INT("U32BE")) "," FIELD("length", INT("U16LE")) "," FIELD(
			"filter_mask", INT("U8LE")) "," FIELD("file_uri", URI)) SHAPE("[2,3]"),
		RECORD(FIELD("offset", INT("U32BE")) "," FIELD("length", INT("U16LE")) "," FIELD(
			"filter_mask",
			INT("U8LE")) "," FIELD("file_uri",
					       "{'class':'H5T_STRING','charSet':'H5T_CSET_ASCII',"
					       "'strPad':'H5T_STR_SPACEPAD','length':16}"))
			SHAPE("[2,3]"),
	};
	for (size_t i = 0; i < 2; i++) {
		uint8_t fixed[23] = {0, 0, 1, 0, 5, 0, 3};
		char heap[8] = "b/file";
		struct pair both = make(INDIRECT(""), types[i]);
		struct elems record = {.fixed = {.data = fixed, .len = 23}};
		const struct schema_answer answer = {.record = &record};
		struct found f;
		if (i == 0) {
			elems_put_vlen(fixed + 7, 6, 0);
			record.heap = (struct bytes){.data = (uint8_t *)heap, .len = 8};
		} else {
			memcpy(fixed + 7, "b/file          ", 16);
		}
		locate(&f, &both.p, &both.table.o, 0, 1, &answer);
		if (f.rc)
			fail_msg("%s", f.err.msg);
		assert_int_equal(f.place.offset, 256);
		assert_int_equal(f.place.length, 5);
		assert_int_equal(f.place.filter_mask, 3);
		assert_string_equal(f.place.file->uri, "b/file");
		release(&both);
	}
}

static void damaged_records_are_refused(void **state)
{
	static const struct {
		uint8_t bytes[12];
		const char *why;
	} rows[] = {
		{{[7] = 0x80, [8] = 1}, "offset is negative"},
		{{[8] = 1, [11] = 0x80}, "size is negative"},
		{{[8] = 1, [11] = 0x10}, "the limit is 268435456"},
	};
	struct pair both = make(IN_ONE_FILE, RECORD(OFFSET "," SIZE) SHAPE("[2,3]"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct elems record = {
			.fixed = {.data = (uint8_t *)(uintptr_t)rows[i].bytes, .len = 12}};
		const struct schema_answer answer = {.record = &record};
		struct found f;
		locate(&f, &both.p, &both.table.o, 1, 1, &answer);
		assert_int_equal(f.rc, -EIO);
		assert_contains(f.err.msg, rows[i].why);
		assert_contains(f.err.msg, DATASET_ID ": record 1");
	}
	release(&both);
}

static void tables_of_another_form_are_refused(void **state)
{
	static const struct {
		const char *dataset, *table, *why;
	} rows[] = {
		{IN_ONE_FILE, TYPE("I32LE") SHAPE("[2,3]"), "not records"},
		{IN_ONE_FILE, RECORD(OFFSET) SHAPE("[2,3]"), "no offset and size"},
		{IN_ONE_FILE, RECORD(SIZE) SHAPE("[2,3]"), "no offset and size"},
		{IN_ONE_FILE, RECORD(OFFSET "," FIELD("size", URI)) SHAPE("[2,3]"),
		 "no offset and size"},
		{INDIRECT(""), RECORD(OFFSET "," SIZE) SHAPE("[2,3]"), "name a file"},
		{IN_ONE_FILE, RECORD(OFFSET "," SIZE) SHAPE("[6]"), "dimensions"},
		{IN_ONE_FILE, RECORD(OFFSET "," SIZE) SHAPE("[2,2]"), "2 records"},
		{IN_ONE_FILE, RECORD(OFFSET "," SIZE) SHAPE("[0,3]"), "no records of its own"},
		{IN_ONE_FILE,
		 RECORD(OFFSET "," SIZE) SHAPE("[2,3]")
			 REF("'class':'H5D_CHUNKED_REF_INDIRECT','dims':[2,3],"
			     "'chunk_table':'" DATASET_ID "'"),
		 "no records of its own"},
	};
	struct found f;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pair both = make(rows[i].dataset, rows[i].table);
		locate(&f, &both.p, &both.table.o, 0, 0, NULL);
		assert_int_equal(f.rc, -EIO);
		assert_contains(f.err.msg, rows[i].why);
		release(&both);
	}
	struct parsed p = parse(IN_ONE_FILE);
	locate(&f, &p, NULL, 0, 0, NULL);
	assert_int_equal(f.rc, -EIO);
	assert_contains(f.err.msg, "does not exist");
	parsed_release(&p);
}

static void a_record_that_is_not_stored_is_in_the_index(void **state)
{
	struct pair both =
		make(INDIRECT(",'file_uri':'b/data/x','hsmount':{'etag':'e','size':9}"),
		     RECORD(OFFSET "," SIZE) SHAPE("[2,3]") ",'creationProperties':{'initializer':["
							    "'chunklocator','--h5path=/a/b',"
							    "'--filepath=data/x','--bucket=b']}");
	const struct schema_answer answer = {.absent = true};
	struct found f;
	assert_int_equal(both.table.o.dataset.initializer, INITIALIZER_CHUNK_LOCATOR);
	locate(&f, &both.p, &both.table.o, 5, 1, &answer);
	assert_int_equal(f.rc, SCHEMA_NEEDS_INDEX);
	assert_string_equal(f.place.file->uri, "b/data/x");
	assert_string_equal(f.place.file->h5path, "/a/b");
	assert_string_equal(f.place.file->etag, "e");
	assert_int_equal(f.place.file->size, 9);
	release(&both);
}

static void a_locator_without_a_bucket_means_that_of_the_domain(void **state)
{
	struct parsed p = parse(RECORD(OFFSET "," SIZE) SHAPE(
		"[2,3]") ",'creationProperties':{'initializer':['chunklocator','--h5path=/a/b',"
			 "'--filepath=data/x']}");
	assert_string_equal(p.o.dataset.indexed->uri, "/data/x");
	parsed_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contiguous_data_are_cut_into_runs),
		cmocka_unit_test(a_scalar_is_one_range),
		cmocka_unit_test(data_without_a_range_are_absent),
		cmocka_unit_test(a_range_that_is_too_short_is_an_error),
		cmocka_unit_test(chunks_are_listed_in_the_document),
		cmocka_unit_test(the_version_of_the_file_is_recorded),
		cmocka_unit_test(damaged_references_are_kept),
		cmocka_unit_test(a_chunk_of_more_than_256_MiB_is_refused),
		cmocka_unit_test(variable_length_data_cannot_be_read),
		cmocka_unit_test(a_record_has_the_place),
		cmocka_unit_test(a_record_may_have_a_length_a_mask_and_a_file),
		cmocka_unit_test(damaged_records_are_refused),
		cmocka_unit_test(tables_of_another_form_are_refused),
		cmocka_unit_test(a_record_that_is_not_stored_is_in_the_index),
		cmocka_unit_test(a_locator_without_a_bucket_means_that_of_the_domain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
