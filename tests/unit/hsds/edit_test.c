/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents that are edited: those of real domains (the corpus of the fuzz target of the parser),
 * and hostile ones. What a new document must be is in support/edited.h.
 */
#include "sampling.h"
#include "schema_test.h"

#include <dirent.h>

#include "edited.h"

/* ---- one document ---- */

static void edit_text(const char *text, size_t n, const uint8_t *steps, uint32_t nsteps,
		      struct edited *e, struct bytes *out, struct err *err, int *rc)
{
	const char *at = strstr(text, "\"root\"");
	struct schema_id id, root;
	assert_non_null(at);
	assert_true(
		schema_id_parse(strchr(strstr(text, "\"id\"") + 4, '"') + 1, SCHEMA_ID_LEN, &id));
	assert_true(schema_id_parse(strchr(at + 6, '"') + 1, SCHEMA_ID_LEN, &root));
	char *exact = malloc(n ? n : 1);
	memcpy(exact, text, n);
	*rc = edited_init(e, &id, &root, exact, n, nsteps, err);
	if (!*rc) {
		for (uint32_t i = 0; i < nsteps; i++)
			edited_step(e, steps + (size_t)3 * i);
		*rc = edited_make(e, exact, n, out, err);
	}
	free(exact);
}

static void check(const char *text, const uint8_t *steps, uint32_t nsteps, const char *after,
		  int want, const char *why)
{
	auto_bytes struct bytes out = {0};
	struct err err = ERR_INIT;
	struct edited e;
	int rc;
	edit_text(text, strlen(text), steps, nsteps, &e, &out, &err, &rc);
	const char *differs = rc ? NULL : edited_differs(&e, &out);
	if (rc != want || differs)
		fail_msg("%s:\n%d %s %s\n%.*s", text, rc, err.msg, differs ? differs : "",
			 (int)out.len, (char *)out.data);
	if (!rc && after && (out.len != strlen(after) || memcmp(out.data, after, out.len) != 0))
		fail_msg("\n%s\n%s\n%.*s", text, after, (int)out.len, (char *)out.data);
	if (rc && why)
		assert_contains(err.msg, why);
	edited_release(&e);
}

/* ---- exact results ---- */

#define GROUP(members) "{\"id\":\"" ROOT_ID "\",\"root\":\"" ROOT_ID "\"" members "}"
#define MODIFIED       ",\"lastModified\":1"
#define NOW_TEXT       "1800000000.123456"
#define MODIFIED_NOW   ",\"lastModified\":" NOW_TEXT
#define INT8(created)                                                                              \
	"{\"type\":\"H5T_STD_I8LE\",\"shape\":{\"class\":\"H5S_SCALAR\"},\"value\":7.9,"           \
	"\"x\":[],\"created\":" created "}"
#define FRESH_ATTR(name, created)                                                                  \
	"\"" name "\": {\"type\": {\"class\": \"H5T_INTEGER\", \"base\": \"H5T_STD_I32LE\"}, "     \
	"\"shape\": {\"class\": \"H5S_SIMPLE\", \"dims\": [3]}, "                                  \
	"\"value\": [50462976, 117835012, 8], \"created\": " created "}"
#define SOFT(path, created)                                                                        \
	"{\"class\":\"H5L_TYPE_SOFT\",\"h5path\":\"" path "\",\"created\":" created "}"

static void changes_what_is_asked(void **state)
{
	static const struct {
		const char *before;
		uint8_t steps[9];
		uint32_t n;
		const char *after;
	} rows[] = {
		/* nothing but the time */
		{GROUP(",\"odd\":[1e2, \"\\ud800\",NaN] " MODIFIED),
		 {0},
		 0,
		 GROUP(",\"odd\":[1e2, \"\\ud800\",NaN] " MODIFIED_NOW)},
		{GROUP(""), {0}, 0, GROUP(", \"lastModified\": " NOW_TEXT)},
		{GROUP(",\"lastModified\":null,\"lastM\\u006fdified\":2"),
		 {0},
		 0,
		 GROUP(",\"lastModified\":" NOW_TEXT ",\"lastM\\u006fdified\":" NOW_TEXT)},
		/* attributes */
		{GROUP(",\"attributes\":{ \"a\":" INT8("1.50") " , \"b\":" INT8("2") " }" MODIFIED),
		 {EDITED_REMOVE, 0, 0},
		 1,
		 GROUP(",\"attributes\":{ \"b\":" INT8("2") " }" MODIFIED_NOW)},
		{GROUP(",\"attributes\":{ \"a\":" INT8("1.50") " , \"b\":" INT8("2") " }" MODIFIED),
		 {EDITED_REMOVE, 1, 0},
		 1,
		 GROUP(",\"attributes\":{ \"a\":" INT8("1.50") " }" MODIFIED_NOW)},
		{GROUP(",\"attributes\":{ \"a\":" INT8("1.50") " }" MODIFIED),
		 {EDITED_REMOVE, 0, 0},
		 1,
		 GROUP(",\"attributes\":{  }" MODIFIED_NOW)},
		{GROUP(",\"attributes\":{\"a\":" INT8("1.50") "}" MODIFIED),
		 {EDITED_RENAME, 0, 0},
		 1,
		 GROUP(",\"attributes\":{\"new\":" INT8("1.50") "}" MODIFIED_NOW)},
		{GROUP(",\"attributes\":{\"\\u0061\" : " INT8("1.50") "}" MODIFIED),
		 {EDITED_REPLACE, 0, 0},
		 1,
		 GROUP(",\"attributes\":{" FRESH_ATTR("a", "1.50") "}" MODIFIED_NOW)},
		{GROUP(",\"attributes\":{}" MODIFIED),
		 {EDITED_ADD, 0, 0},
		 1,
		 GROUP(",\"attributes\":{" FRESH_ATTR("new", NOW_TEXT) "}" MODIFIED_NOW)},
		{GROUP(",\"attributes\":null" MODIFIED),
		 {EDITED_ADD, 0, 0},
		 1,
		 GROUP(",\"attributes\":{" FRESH_ATTR("new", NOW_TEXT) "}" MODIFIED_NOW)},
		{GROUP(MODIFIED),
		 {EDITED_ADD, 0, 0},
		 1,
		 GROUP(MODIFIED_NOW ", \"attributes\": {" FRESH_ATTR("new", NOW_TEXT) "}")},
		/* the last member leaves, and a new one comes */
		{GROUP(",\"attributes\":{ \"a\":" INT8("1") "}" MODIFIED),
		 {EDITED_ADD, 0, 0, EDITED_REMOVE, 0, 0},
		 2,
		 GROUP(",\"attributes\":{ " FRESH_ATTR("new", NOW_TEXT) "}" MODIFIED_NOW)},
		/* later than all that exist */
		{GROUP(",\"attributes\":{\"a\":" INT8("1900000000.5") "}" MODIFIED),
		 {EDITED_ADD, 0, 0},
		 1,
		 GROUP(",\"attributes\":{\"a\":" INT8("1900000000.5") ", " FRESH_ATTR(
			 "new", "1900000000.500002") "}" MODIFIED_NOW)},
		/* if a name occurs twice, the last one counts and the others go with it */
		{GROUP(",\"attributes\":{\"a\":" INT8("1") ",\"b\":" INT8("2") ",\"\\u0061\":" INT8(
			 "3") "}" MODIFIED),
		 {EDITED_REMOVE, 1, 0},
		 1,
		 GROUP(",\"attributes\":{\"b\":" INT8("2") "}" MODIFIED_NOW)},
		/* a member that is not read makes room */
		{GROUP(",\"attributes\":{\"new\":7,\"b\":" INT8("2") "}" MODIFIED),
		 {EDITED_ADD, 0, 0},
		 1,
		 GROUP(",\"attributes\":{\"b\":" INT8("2") ", " FRESH_ATTR(
			 "new", NOW_TEXT) "}" MODIFIED_NOW)},
		/* links */
		{GROUP(",\"links\":{\"a\":" SOFT("x", "5") ",\"b\":" SOFT("y", "6") "}" MODIFIED),
		 {EDITED_LINK | EDITED_REPLACE, 0, 3},
		 1,
		 GROUP(",\"links\":{\"a\": {\"id\": \"" ROOT_ID "\", \"class\": \"H5L_TYPE_HARD\", "
		       "\"created\": 5},\"b\":" SOFT("y", "6") "}" MODIFIED_NOW)},
		{GROUP(",\"links\":{\"a\":" SOFT("x", "5") ",\"b\":" SOFT("y", "6") "}" MODIFIED),
		 {EDITED_LINK | EDITED_ADD, 0, 27, EDITED_LINK | EDITED_ADD, 0, 27},
		 2,
		 GROUP(",\"links\":{\"a\":" SOFT("x", "5") ",\"b\":" SOFT(
			 "y", "6") ", \"new\": {\"id\": \"" ROOT_ID
				   "\", \"class\": \"H5L_TYPE_HARD\", "
				   "\"created\": " NOW_TEXT "}, \"new0\": {\"id\": \"" ROOT_ID
				   "\", \"class\": \"H5L_TYPE_HARD\", \"created\": "
				   "1800000000.123458}}" MODIFIED_NOW)},
		/* another order */
		{GROUP(",\"links\":{\"a\":" SOFT("x", "5") ",\"b\":" SOFT("y", "6") ",\"c\":" SOFT(
			 "z", "7") "}" MODIFIED),
		 {EDITED_LINK | EDITED_MOVE, 1, 0},
		 1,
		 GROUP(",\"links\":{\"a\":" SOFT("x", "5") ",\"b\":" SOFT(
			 "y", "7.000002") ",\"c\":" SOFT("z", "7") "}" MODIFIED_NOW)},
		/* what only this program knows */
		{GROUP(MODIFIED),
		 {EDITED_BLOCK, 0, 4},
		 1,
		 GROUP(MODIFIED_NOW
		       ", \"hsmount\": {\"userBlock\": {\"size\": 512, \"value\": \"BA==\"}}")},
		{GROUP(",\"hsmount\":{\"x\":[1e2]}" MODIFIED),
		 {EDITED_BLOCK, 0, 5},
		 1,
		 GROUP(",\"hsmount\":{\"x\":[1e2], \"userBlock\": {\"size\": 512, \"object\": "
		       "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef-"
		       "0123456789abcdef\"}}" MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{ \"userBlock\" : {\"size\":512,\"value\":\"QQ==\"} "
		       ",\"x\":1}" MODIFIED),
		 {EDITED_BLOCK, 0, 4},
		 1,
		 GROUP(",\"hsmount\":{\"userBlock\": {\"size\": 512, \"value\": \"BA==\"}, "
		       "\"x\":1}" MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{\"userBlock\":{\"size\":512,\"value\":\"QQ==\"}}" MODIFIED),
		 {EDITED_BLOCK, 0, 0},
		 1,
		 GROUP(MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{\"comment\":\"b\",\"userBlock\":{\"size\":512,"
		       "\"value\":\"QQ==\"}}" MODIFIED),
		 {EDITED_BLOCK, 0, 0, EDITED_COMMENT, 0, 0},
		 2,
		 GROUP(MODIFIED_NOW)},
		{GROUP(MODIFIED),
		 {EDITED_BLOCK, 0, 4, EDITED_COMMENT, 0, 1},
		 2,
		 GROUP(MODIFIED_NOW ", \"hsmount\": {\"comment\": \"a comment\", \"userBlock\": "
				    "{\"size\": 512, \"value\": \"BA==\"}}")},
		/* a new name must not change the order of equal times */
		{GROUP(",\"links\":{\"a\":" SOFT("x", "5") ",\"b\":" SOFT("y", "5") "}" MODIFIED),
		 {EDITED_LINK | EDITED_RENAME, 0, 0},
		 1,
		 GROUP(",\"links\":{\"new\":" SOFT("x", "5") ",\"b\":" SOFT(
			 "y", "5.000002") "}" MODIFIED_NOW)},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(rows[i].before, rows[i].steps, rows[i].n, rows[i].after, 0, NULL);
}

/* The other members of "hsmount" keep their bytes. */
static void changes_the_comment(void **state)
{
	enum { NONE, TEXT, BYTES };
	static const struct {
		const char *before;
		uint8_t how;
		const char *after;
	} rows[] = {
		{GROUP(MODIFIED), TEXT,
		 GROUP(MODIFIED_NOW ", \"hsmount\": {\"comment\": \"a comment\"}")},
		{GROUP(",\"hsmount\":null" MODIFIED), TEXT,
		 GROUP(",\"hsmount\":{\"comment\": \"a comment\"}" MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{}" MODIFIED), TEXT,
		 GROUP(",\"hsmount\":{\"comment\": \"a comment\"}" MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{ \"x\" : 1.50 }" MODIFIED), BYTES,
		 GROUP(",\"hsmount\":{\"x\" : 1.50, \"comment\": \"caf\\udce9 "
		       "\\\"\\\\\\n\"}" MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{\"comment\" : \"b\",\"x\":1e2}" MODIFIED), TEXT,
		 GROUP(",\"hsmount\":{\"comment\": \"a comment\", \"x\":1e2}" MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{\"c\\u006fmment\":\"b\" , \"x\":1e2}" MODIFIED), NONE,
		 GROUP(",\"hsmount\":{\"x\":1e2}" MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{\"x\":1e2, \"comment\":\"b\" }" MODIFIED), NONE,
		 GROUP(",\"hsmount\":{\"x\":1e2}" MODIFIED_NOW)},
		{GROUP(",\"hsmount\" : {\"comment\":\"b\"}" MODIFIED), NONE, GROUP(MODIFIED_NOW)},
		{GROUP(MODIFIED ",\"hsmount\":{\"comment\":\"b\"}"), NONE, GROUP(MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{\"comment\":\"b\"}"), NONE,
		 GROUP(", \"lastModified\": " NOW_TEXT)},
		{"{\"hsmount\":{\"comment\":\"b\"} , \"id\":\"" ROOT_ID "\",\"root\":\"" ROOT_ID
		 "\",\"lastModified\":1}",
		 NONE, "{\"id\":\"" ROOT_ID "\",\"root\":\"" ROOT_ID "\"" MODIFIED_NOW "}"},
		/* one that could not be read is replaced */
		{GROUP(",\"hsmount\":{\"comment\":7}" MODIFIED), TEXT,
		 GROUP(",\"hsmount\":{\"comment\": \"a comment\"}" MODIFIED_NOW)},
		/* no change: all bytes stay */
		{GROUP(",\"hsmount\":[1] " MODIFIED), NONE,
		 GROUP(",\"hsmount\":[1] " MODIFIED_NOW)},
		{GROUP(",\"hsmount\":{\"comment\":\"\\ud800\"}" MODIFIED), NONE,
		 GROUP(",\"hsmount\":{\"comment\":\"\\ud800\"}" MODIFIED_NOW)},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t step[] = {EDITED_COMMENT, 0, rows[i].how};
		check(rows[i].before, step, 1, rows[i].after, 0, NULL);
	}
	static const struct {
		const char *before, *why;
	} bad[] = {
		{GROUP(",\"hsmount\":[1]"), "hsmount: not an object"},
		{GROUP(",\"hsmount\":{\"a\":1},\"hsmount\":{}"),
		 "hsmount: the document has it twice"},
		{GROUP(",\"hsmount\":{\"comment\":\"1\",\"comment\":\"2\"}"),
		 "comment: the document has it twice"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const uint8_t step[] = {EDITED_COMMENT, 0, TEXT};
		check(bad[i].before, step, 1, NULL, -EIO, bad[i].why);
	}
}

#define DATASET(shape, more)                                                                       \
	"{\"id\":\"" DATASET_ID "\",\"root\":\"" ROOT_ID "\",\"type\":\"H5T_STD_I8LE\","           \
	"\"shape\":" shape ",\"layout\":{\"class\":\"H5D_CHUNKED\",\"dims\":[4]}" more             \
	",\"lastModified\":1}"
#define DATASET_NOW(shape, more)                                                                   \
	"{\"id\":\"" DATASET_ID "\",\"root\":\"" ROOT_ID "\",\"type\":\"H5T_STD_I8LE\","           \
	"\"shape\":" shape ",\"layout\":{\"class\":\"H5D_CHUNKED\",\"dims\":[4]}" more             \
	",\"lastModified\":" NOW_TEXT "}"

static void changes_the_shape(void **state)
{
	static const struct {
		const char *before, *after;
		uint8_t how;
	} rows[] = {
		{"{\"class\":\"H5S_SIMPLE\",\"dims\" : [ 3 ],\"maxdims\":[0],\"x\":1}",
		 "{\"class\":\"H5S_SIMPLE\",\"dims\" : [10],\"maxdims\":[0],\"x\":1}", 7},
		{"{\"class\":\"H5S_SIMPLE\",\"maxdims\":[\"H5S_UNLIMITED\"],\"dims\":3}",
		 "{\"class\":\"H5S_SIMPLE\",\"maxdims\":[\"H5S_UNLIMITED\"],\"dims\":[4]}", 1},
		{"{\"class\":\"H5S_SIMPLE\",\"dims\":[5],\"maxdims\":[9]}",
		 "{\"class\":\"H5S_SIMPLE\",\"dims\":[8],\"maxdims\":[9]}", 8},
		/* the maximum stays */
		{"{\"class\":\"H5S_SIMPLE\",\"dims\":[5]}",
		 "{\"class\":\"H5S_SIMPLE\",\"dims\":[2], \"maxdims\": [5]}", 2},
		{"{\"class\":\"H5S_SIMPLE\",\"maxdims\":null,\"dims\":[5]}",
		 "{\"class\":\"H5S_SIMPLE\",\"maxdims\":[5],\"dims\":[2]}", 2},
		{"{\"class\":\"H5S_SIMPLE\",\"dims\":[3],\"d\\u0069ms\":[3],\"maxdims\":[0]}", NULL,
		 7},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char before[1024], after[1024];
		const uint8_t step[] = {EDITED_SHAPE, 0, rows[i].how};
		snprintf(before, sizeof(before), DATASET("%s", ""), rows[i].before);
		snprintf(after, sizeof(after), DATASET_NOW("%s", ""),
			 rows[i].after ? rows[i].after : "");
		check(before, step, 1, after, rows[i].after ? 0 : -EIO,
		      "dims: the document has it twice");
	}
	static const uint8_t grow[] = {EDITED_SHAPE, 0, 1};
	check("{\"id\":\"" DATASET_ID "\",\"root\":\"" ROOT_ID "\",\"type\":\"H5T_STD_I8LE\","
	      "\"shape\":{\"class\":\"H5S_SIMPLE\",\"dims\":[3],\"maxdims\":[0]}}",
	      grow, 1, NULL, -EIO, "no shape of chunks");
}

/* If CLASS goes or changes, NAME must be read as before: dimension_scale.c. */
static void keeps_dimension_scales(void **state)
{
	static const char text[] = DATASET(
		"{\"class\":\"H5S_SIMPLE\",\"dims\":[3]}",
		",\"attributes\":{\"CLASS\":{\"type\":{\"class\":\"H5T_STRING\",\"charSet\":"
		"\"H5T_CSET_ASCII\",\"strPad\":\"H5T_STR_NULLPAD\",\"length\":15},\"shape\":{"
		"\"class\":\"H5S_SCALAR\"},\"value\":\"DIMENSION_SCALE\",\"created\":1},"
		"\"NAME\":{\"type\":{\"class\":\"H5T_STRING\",\"charSet\":\"H5T_CSET_ASCII\","
		"\"strPad\":\"H5T_STR_NULLPAD\",\"length\":3},\"shape\":{\"class\":\"H5S_SCALAR\"},"
		"\"value\":\"lat\",\"created\":2}}");
	for (uint8_t what = EDITED_REMOVE; what <= EDITED_RENAME; what++)
		for (uint8_t i = 0; i < 2; i++)
			for (uint8_t how = 0; how < 10; how++) {
				const uint8_t step[] = {what, i, how};
				check(text, step, 1, NULL, 0, NULL);
			}
}

/* ---- refusals ---- */

static void refuses_odd_documents(void **state)
{
	static const uint8_t add[] = {EDITED_ADD, 0, 0};
	static const uint8_t block[] = {EDITED_BLOCK, 0, 1};
	static const uint8_t retarget[] = {EDITED_LINK | EDITED_REPLACE, 0, 3};
	check(GROUP(",\"attributes\":{},\"attr\\u0069butes\":{}"), add, 1, NULL, -EIO,
	      "attributes: the document has it twice");
	check(GROUP(",\"attributes\":[]"), add, 1, NULL, -EIO, "attributes: not an object");
	check(GROUP(",\"hsmount\":7"), block, 1, NULL, -EIO, "hsmount: not an object");
	check(GROUP(",\"hsmount\":{},\"hsmount\":{}"), block, 1, NULL, -EIO,
	      "hsmount: the document has it twice");
	check(GROUP(",\"hsmount\":{\"userBlock\":1,\"user\\u0042lock\":null}"), block, 1, NULL,
	      -EIO, "userBlock: the document has it twice");
	check(GROUP(",\"attributes\":{}") " x", add, 1, NULL, -EIO, "JSON");
	check(GROUP(",\"x\":\"\xff\""), add, 1, NULL, -EIO, "JSON");
	/* two members, and the name of both links is "a" */
	check(GROUP(",\"links\":{\"a\":" SOFT(
		      "x", "1") ",\"b\":{\"class\":\"H5L_TYPE_SOFT\","
				"\"h5path\":\"x\",\"hsmount\":{\"name\":\"YQ==\"}}}"),
	      retarget, 1, NULL, -EIO, "links");
	enum { DEPTH = 200 };
	char deep[2 * DEPTH + 1] = {0};
	memset(deep, '[', DEPTH);
	memset(deep + DEPTH, ']', DEPTH);
	char text[1024];
	snprintf(text, sizeof(text), GROUP(",\"x\":%s"), deep);
	check(text, add, 1, NULL, -EIO, "nested");
}

static void refuses_what_a_domain_cannot_hold(void **state)
{
	static const char text[] =
		GROUP(",\"attributes\":{\"a\":" INT8("1") "},\"links\":{\"l\":" SOFT("x", "1") "}");
	const struct schema_id root = test_id(ROOT_ID);
	for (int i = 0; i < 4; i++) {
		auto_bytes struct bytes out = {0};
		struct err err = ERR_INIT;
		struct edited e;
		assert_int_equal(edited_init(&e, &root, &root, text, strlen(text), 1, &err), 0);
		struct object *o = edited_after(&e);
		struct arena *a = tree_arena(e.trees[1]);
		if (i == 0)
			o->attrs[0].name = "";
		else if (i == 1)
			o->attrs[0].type = dtype_reference(a, DTYPE_REF_REGION, NULL);
		else if (i == 2)
			o->group.links[0].cls = LINK_USER;
		else
			o->group.links[0].path = "";
		e.attrs.at[0].changed = i < 2;
		e.links.at[0].changed = i >= 2;
		const int rc = edited_make(&e, text, strlen(text), &out, &err);
		assert_int_equal(rc, -EOPNOTSUPP);
		assert_contains(err.msg, i == 0	  ? "attribute \"\": a domain cannot hold"
					 : i == 1 ? "attribute \"a\": a domain cannot hold"
						  : "link \"l\": a domain cannot hold");
		assert_int_equal(out.len, 0);
		edited_release(&e);
	}
}

static void refuses_a_long_comment(void **state)
{
	static const char text[] = GROUP("");
	static char comment[65002];
	const struct schema_id root = test_id(ROOT_ID);
	for (size_t n = 65000; n <= 65001; n++) {
		auto_bytes struct bytes out = {0};
		struct err err = ERR_INIT;
		struct edited e;
		memset(comment, '\xff', n);
		assert_int_equal(edited_init(&e, &root, &root, text, strlen(text), 0, &err), 0);
		edited_after(&e)->comment = comment;
		e.change.comment = true;
		assert_int_equal(edited_make(&e, text, strlen(text), &out, &err),
				 n == 65000 ? 0 : -EOPNOTSUPP);
		if (n == 65000)
			assert_null(edited_differs(&e, &out));
		else
			assert_contains(err.msg, "a comment of more than 65,000 bytes");
		edited_release(&e);
	}
}

/* A part that the tree has and the document lacks is no reason to guess. */
static void refuses_another_document(void **state)
{
	static const char text[] = GROUP(",\"attributes\":{\"a\":" INT8("1") "}");
	static const char other[] = GROUP(",\"attributes\":{\"b\":" INT8("1") "}");
	static const uint8_t step[] = {EDITED_REMOVE, 0, 0};
	const struct schema_id root = test_id(ROOT_ID);
	auto_bytes struct bytes out = {0};
	struct err err = ERR_INIT;
	struct edited e;
	assert_int_equal(edited_init(&e, &root, &root, text, strlen(text), 1, &err), 0);
	edited_step(&e, step);
	assert_int_equal(edited_make(&e, other, strlen(other), &out, &err), -EIO);
	assert_contains(err.msg, "the document has no attribute \"a\"");
	edited_release(&e);
}

/* ---- real documents ---- */

static char *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	char *text = malloc(1 << 20);
	*n = fread(text, 1, (1 << 20) - 1, f);
	text[*n] = '\0';
	fclose(f);
	return text;
}

static void check_document(const char *text, size_t n, const uint8_t *steps, uint32_t nsteps)
{
	auto_bytes struct bytes out = {0};
	struct err err = ERR_INIT;
	struct edited e;
	int rc;
	edit_text(text, n, steps, nsteps, &e, &out, &err, &rc);
	const char *why = rc ? NULL : edited_differs(&e, &out);
	if (!rc && !why)
		why = edited_bytes_differ(&e, text, n, &out);
	/* Some documents do not have what the shape needs to change alone. */
	if (rc && !strstr(err.msg, "shape of chunks") && !strstr(err.msg, "maxdims: missing"))
		fail_msg("%d %s\n%s", rc, err.msg, text);
	if (why)
		fail_msg("%s\n%s\n%.*s", why, text, (int)out.len, (char *)out.data);
	edited_release(&e);
}

/* Each part is removed, replaced, renamed and moved, one is added, and the shape changes. */
static void check_all_steps(const char *text, size_t n)
{
	const uint8_t step = (uint8_t)sampling_step(4);
	check_document(text, n, NULL, 0);
	for (uint8_t what = 0; what < EDITED_STEPS; what++)
		for (uint8_t i = what % step; i < 12; i = (uint8_t)(i + step))
			for (int link = 0; link < 2; link++) {
				const uint8_t how = (uint8_t)(i * 7 + what);
				const uint8_t steps[] = {(uint8_t)(what | (link ? EDITED_LINK : 0)),
							 i, how};
				check_document(text, n, steps, 1);
			}
}

static void edits_real_documents(void **state)
{
	char dir[1024], path[2048];
	unsigned int documents = 0;
	snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/schema_object", getenv("HSMOUNT_SOURCE"));
	DIR *d = opendir(dir);
	assert_non_null(d);
	for (const struct dirent *entry; (entry = readdir(d));) {
		/* those of real domains have a number at their end */
		const char *dot = strstr(entry->d_name, ".json");
		if (!dot || dot == entry->d_name || dot[-1] < '0' || dot[-1] > '9')
			continue;
		size_t n;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		char *text = read_file(path, &n);
		if (strstr(text, "\"root\"")) {
			check_all_steps(text, n);
			documents++;
		}
		free(text);
	}
	closedir(d);
	assert_true(documents > 30);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_what_is_asked),
		cmocka_unit_test(changes_the_comment),
		cmocka_unit_test(changes_the_shape),
		cmocka_unit_test(keeps_dimension_scales),
		cmocka_unit_test(refuses_odd_documents),
		cmocka_unit_test(refuses_what_a_domain_cannot_hold),
		cmocka_unit_test(refuses_a_long_comment),
		cmocka_unit_test(refuses_another_document),
		cmocka_unit_test(edits_real_documents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
