/* SPDX-License-Identifier: Apache-2.0 */
/* Listings and error documents, good and bad. */
#include "store_fixture.h"

#include <aws/error_xml.h>
#include "s3/list_xml.h"
#include "s3/upload_xml.h"
#include <aws/xml.h>

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
#define FRAME(members)                                                                             \
	HEAD "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" members        \
	     "</ListBucketResult>"
#define LIST(members) FRAME("<IsTruncated>false</IsTruncated>" members)
#define SIZED(key, size)                                                                           \
	"<Contents><Key>" key "</Key><LastModified>2009-10-12T17:50:30.123Z</LastModified>"        \
	"<ETag>&quot;abc&quot;</ETag><Size>" size "</Size><StorageClass>STANDARD</StorageClass>"   \
	"<Owner><ID>1</ID></Owner></Contents>"
#define OBJECT(key) SIZED(key, "434234")
#define PREFIX(key) "<CommonPrefixes><Prefix>" key "</Prefix></CommonPrefixes>"
#define URL	    "<EncodingType>url</EncodingType>"

static int parse(const char *xml, const struct s3_list_query *req, struct s3_list_result *out,
		 char *keys, size_t n)
{
	int rc = s3_list_parse(xml, strlen(xml), req, out, NULL);
	keys[0] = '\0';
	if (rc == 0)
		join_page(&out->page, keys, n);
	return rc;
}

static void test_fields(void **state)
{
	const struct s3_list_query req = {.prefix = "", .delimit = true, .max = 10};
	struct s3_list_result out;
	char keys[256];
	assert_int_equal(
		parse(LIST("<Name>b</Name><Prefix/><KeyCount>2</KeyCount>" OBJECT("z/y") //
			   PREFIX("a/") "<IsTruncated>true</IsTruncated>"
					"<NextContinuationToken>1ueG=</NextContinuationToken>"),
		      &req, &out, keys, sizeof(keys)),
		0);
	assert_string_equal(keys, "a/ z/y");
	assert_true(out.page.items[0].is_prefix);
	assert_int_equal(out.page.items[1].meta.size, 434234);
	assert_int_equal(out.page.items[1].meta.mtime_ns, INT64_C(1255369830000000000));
	assert_string_equal(out.page.items[1].meta.etag, "abc");
	assert_true(out.page.more);
	assert_string_equal(str_text(&out.token), "1ueG=");
	assert_string_equal(str_text(&out.last), "z/y");
	s3_list_release(&out);
}

/* The next page never begins after a key without the prefix: callers remove the prefix from it. */
static void test_where_to_go_on(void **state)
{
	static const struct {
		const char *xml, *last;
	} cases[] = {
		{FRAME("<IsTruncated>true</IsTruncated>" OBJECT("a/b") OBJECT("z")), "a/b"},
		{FRAME("<IsTruncated>true</IsTruncated>" OBJECT("a/b") OBJECT("a/b/../c")),
		 "a/b/../c"},
		{FRAME("<IsTruncated>true</IsTruncated>" OBJECT("b")), ""},
	};
	const struct s3_list_query req = {.prefix = "a/", .max = 10};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_list_result out;
		char keys[256];
		assert_int_equal(parse(cases[i].xml, &req, &out, keys, sizeof(keys)), 0);
		assert_string_equal(str_text(&out.last), cases[i].last);
		s3_list_release(&out);
	}
}

static void test_what_is_taken(void **state)
{
	static const struct {
		const char *xml;
		struct s3_list_query req;
		const char *keys;
	} cases[] = {
		{LIST(""), {.prefix = ""}, ""},
		{LIST(OBJECT("a%2Fb+c%2B%C3%A9") URL), {.prefix = ""}, "a/b c+\xc3\xa9"},
		{LIST(OBJECT("a%2Fb+c")), {.prefix = ""}, "a%2Fb+c"},
		{LIST(OBJECT("a&amp;b&#60;")), {.prefix = ""}, "a&b<"},
		{LIST(OBJECT("b") OBJECT("a") OBJECT("b")), {.prefix = ""}, "a b"},
		{LIST(OBJECT("other") OBJECT("pre/x")), {.prefix = "pre/"}, "pre/x"},
		{LIST(OBJECT("a") OBJECT("b") OBJECT("c")),
		 {.prefix = "", .start_after = "b"},
		 "c"},
		{LIST(PREFIX("a/") OBJECT("a/x")), {.prefix = ""}, "a/x"},
		{LIST(PREFIX("a/") PREFIX("a/b/")), {.prefix = "a/", .delimit = true}, "a/b/"},
		{LIST(OBJECT("dir/") OBJECT("dir/a") OBJECT("x//")),
		 {.prefix = "dir/", .markers = true, .delimit = true},
		 "dir/ dir/a"},
		{LIST(OBJECT("dir/") OBJECT("x//") OBJECT("/")),
		 {.prefix = "", .markers = true},
		 "dir/"},
		/* keys that no store may return */
		{LIST(OBJECT("/lead") OBJECT("a//b") OBJECT("../x") OBJECT("dir/") OBJECT("ok")),
		 {.prefix = ""},
		 "ok"},
		{LIST(PREFIX("/") PREFIX("../") PREFIX("a//") PREFIX("no-slash") PREFIX("ok/")),
		 {.prefix = "", .delimit = true},
		 "ok/"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_list_result out;
		char keys[256];
		assert_int_equal(parse(cases[i].xml, &cases[i].req, &out, keys, sizeof(keys)), 0);
		assert_string_equal(keys, cases[i].keys);
		s3_list_release(&out);
	}
}

/* A prefix with one key is not empty. */
static void test_nothing_can_be_read(void **state)
{
	static const char bad[] = LIST("<Contents><Key>a/b</Key><Size>-1</Size></Contents>"
				       "<Contents><Key>a//</Key><Size>1</Size></Contents>"),
			  bad_key[] = LIST("<Contents><Key>a//b</Key><Size>1</Size></Contents>");
	struct s3_list_query req = {.prefix = "a/", .delimit = true, .max = 10};
	struct s3_list_result out;
	char keys[16];
	assert_int_equal(parse(bad, &req, &out, keys, sizeof(keys)), -EIO);
	s3_list_release(&out);
	/* After a page with items. */
	req.start_after = "a/a";
	assert_int_equal(parse(bad, &req, &out, keys, sizeof(keys)), 0);
	s3_list_release(&out);
	/* No store may return this key. */
	req.start_after = NULL;
	assert_int_equal(parse(bad_key, &req, &out, keys, sizeof(keys)), 0);
	s3_list_release(&out);
}

/* Without order, the next page may have keys that are less than the last one of this page. */
static void test_disorder(void **state)
{
	static const struct {
		const char *xml;
		int code;
	} cases[] = {
		{FRAME(OBJECT("a") OBJECT("c") OBJECT("b") "<IsTruncated>true</IsTruncated>"),
		 -EIO},
		{FRAME(PREFIX("b/") PREFIX("a/") "<IsTruncated>true</IsTruncated>"), -EIO},
		{FRAME(OBJECT("a") OBJECT("c") OBJECT("b") "<IsTruncated>false</IsTruncated>"), 0},
		{FRAME(OBJECT("b") OBJECT("b") PREFIX("a/") "<IsTruncated>true</IsTruncated>"), 0},
	};
	const struct s3_list_query req = {.prefix = "", .delimit = true, .max = 10};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_list_result out;
		struct err err = ERR_INIT;
		const int rc = s3_list_parse(cases[i].xml, strlen(cases[i].xml), &req, &out, &err);
		if (rc != cases[i].code || err.code != rc)
			fail_msg("%zu: %d %s", i, rc, err.msg);
		s3_list_release(&out);
	}
}

static void test_bad_listings(void **state)
{
	static const struct {
		const char *defect, *xml;
	} cases[] = {
		{"empty", ""},
		{"no XML", "Internal Server Error"},
		{"another root", HEAD "<Error><Code>SlowDown</Code></Error>"},
		{"cut", HEAD "<ListBucketResult><Contents><Key>a</Key>"},
		{"IsTruncated is missing", FRAME(OBJECT("a"))},
		{"IsTruncated has another value",
		 FRAME(OBJECT("a") "<IsTruncated>yes</IsTruncated>")},
		{"entity", "<!DOCTYPE x [<!ENTITY e \"aaaa\">]><ListBucketResult>&e;"
			   "</ListBucketResult>"},
		{"nested too deeply",
		 LIST("<a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a>")},
		{"a name too long",
		 LIST("<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/>")},
	};
	const struct s3_list_query req = {.prefix = ""};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_list_result out;
		struct err err = ERR_INIT;
		int rc = s3_list_parse(cases[i].xml, strlen(cases[i].xml), &req, &out, &err);
		s3_list_release(&out);
		if (rc != -EBADMSG || err.code != rc)
			fail_msg("%s: %d %s", cases[i].defect, rc, err.msg);
	}
}

/* A bad item does not prevent the others from being listed. */
static void test_bad_items(void **state)
{
	static const struct {
		const char *item, *message;
	} cases[] = {
		{OBJECT("b%00b"), "b%00b (the key contains a NUL)"},
		{OBJECT("b%2"), "b%2 (the key is badly encoded)"},
		{OBJECT("b%zz%0A\n\x7f"), "b%zz%0A%0A%7F (the key is badly encoded)"},
		{PREFIX("b%00/"), "b%00/ (the key contains a NUL)"},
		{OBJECT("b//x"), "b//x (the key cannot be a path)"},
		{OBJECT("..%2Fb"), "..%2Fb (the key cannot be a path)"},
		{PREFIX("b//"), "b// (the key cannot be a path)"},
		{"<Contents><Size>1</Size></Contents>", " (there is no key)"},
		{"<CommonPrefixes/>", " (there is no key)"},
		{SIZED("b", "1x"), "b (the size is not valid)"},
		{SIZED("b", "-1"), "b (the size is not valid)"},
		{SIZED("b", ""), "b (the size is not valid)"},
		{SIZED("b", "9223372036854775808"), "b (the size is not valid)"},
		{SIZED("b", "18446744073709551616"), "b (the size is not valid)"},
		{"<Contents><Key>b</Key></Contents>", "b (the size is not valid)"},
	};
	const struct s3_list_query req = {.prefix = "", .delimit = true};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_str struct str xml = {0};
		struct s3_list_result out;
		char keys[64];
		str_add(&xml, "<ListBucketResult>" URL OBJECT("a"));
		str_add(&xml, cases[i].item);
		str_add(&xml, OBJECT("c") PREFIX("d/") "<IsTruncated>false</IsTruncated>"
						       "</ListBucketResult>");
		assert_int_equal(parse(str_text(&xml), &req, &out, keys, sizeof(keys)), 0);
		assert_string_equal(keys, "a c d/");
		assert_int_equal(out.n_left_out, 1);
		assert_string_equal(str_text(&out.first_left_out), cases[i].message);
		s3_list_release(&out);
	}
}

/* A listing of all objects with a prefix (the chunks of a dataset) fails if it would have to leave
 * out what may be an object. Items that cannot be objects are left out. */
static void test_bad_items_below_a_prefix(void **state)
{
	static const struct {
		const char *item, *why; /* NULL: the item is left out */
	} cases[] = {
		{SIZED("p/b", "1x"), "p/b (the size is not valid)"},
		{SIZED("p/b", "-1"), "p/b (the size is not valid)"},
		{SIZED("p/b", ""), "p/b (the size is not valid)"},
		{SIZED("p/b", "9223372036854775808"), "p/b (the size is not valid)"},
		{SIZED("p/b", "18446744073709551616"), "p/b (the size is not valid)"},
		{OBJECT("p/b%2"), "p/b%2 (the key is badly encoded)"},
		{"<Contents><Size>1</Size></Contents>", " (there is no key)"},
		{SIZED("other", "1x"), NULL},
		{OBJECT("p/b%00"), NULL},
		{OBJECT("p//b"), NULL},
	};
	const struct s3_list_query req = {.prefix = "p/"};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_str struct str xml = {0};
		struct s3_list_result out;
		struct err err = ERR_INIT;
		str_add(&xml, "<ListBucketResult><IsTruncated>false</IsTruncated>" URL);
		str_add(&xml, OBJECT("p/a"));
		str_add(&xml, cases[i].item);
		str_add(&xml, "</ListBucketResult>");
		assert_int_equal(s3_list_parse(xml.b.data, xml.b.len, &req, &out, &err),
				 cases[i].why ? -EIO : 0);
		if (cases[i].why && !strstr(err.msg, cases[i].why))
			fail_msg("%s: %s", cases[i].item, err.msg);
		s3_list_release(&out);
	}
}

/* The message has a part of a key that is too long, and the number of bad items. */
static void test_key_too_long(void **state)
{
	static const size_t lengths[] = {STORE_KEY_MAX + 1, XML_TEXT_MAX, XML_TEXT_MAX + 100};
	const struct s3_list_query req = {.prefix = ""};
	auto_str struct str xml = {0};
	struct s3_list_result out;
	char keys[64];
	str_add(&xml, "<ListBucketResult><IsTruncated>true</IsTruncated>" OBJECT("a"));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		str_add(&xml, "<Contents><Key>");
		for (size_t n = 0; n < lengths[i]; n++)
			str_add(&xml, "b");
		str_add(&xml, "</Key><Size>1</Size></Contents>");
	}
	str_add(&xml, "</ListBucketResult>");
	assert_int_equal(parse(str_text(&xml), &req, &out, keys, sizeof(keys)), 0);
	assert_string_equal(keys, "a");
	assert_string_equal(str_text(&out.last), "a"); /* the next page begins after this key */
	assert_int_equal(out.n_left_out, 3);
	assert_in_range(out.first_left_out.b.len, 200, 250);
	assert_non_null(strstr(str_text(&out.first_left_out), "bbb... (the key is too long)"));
	s3_list_release(&out);
}

/* Items that are ignored without a message. A time that is not valid is unknown. */
static void test_what_is_left_out_silently(void **state)
{
	static const char xml[] =
		LIST(OBJECT("p/a/") OBJECT("other//x") OBJECT("p/") PREFIX("p/d//")
			     OBJECT("p/b") "<Contents><Key>p/c</Key><Size>1</Size>"
					   "<LastModified>yesterday</LastModified></Contents>");
	const struct s3_list_query req = {.prefix = "p/"};
	struct s3_list_result out;
	char keys[64];
	assert_int_equal(parse(xml, &req, &out, keys, sizeof(keys)), 0);
	assert_string_equal(keys, "p/b p/c");
	assert_int_equal(out.page.items[1].meta.mtime_ns, 0);
	assert_int_equal(out.n_left_out, 0);
	s3_list_release(&out);
}

/* A continuation token that is cut would be another token. */
static void test_text_too_long(void **state)
{
	auto_str struct str xml = {0};
	struct s3_list_result out;
	const struct s3_list_query req = {.prefix = ""};
	str_add(&xml, "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>");
	for (int i = 0; i < XML_TEXT_MAX + 100; i++)
		str_add(&xml, "a");
	str_add(&xml, "</NextContinuationToken></ListBucketResult>");
	assert_int_equal(s3_list_parse(xml.b.data, xml.b.len, &req, &out, NULL), -EBADMSG);
	s3_list_release(&out);
}

/* A token that never ends is refused before all of it is in memory. */
static void test_token_too_long(void **state)
{
	static const char *const begins[] = {"<ListBucketResult", "<!--", "<?x ",
					     "<ListBucketResult a=\"", "<ListBucketResult></a"};
	const struct s3_list_query req = {.prefix = ""};
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct s3_list_result out;
		struct err err = ERR_INIT;
		auto_bytes struct bytes xml = {0};
		bytes_append(&xml, begins[i], strlen(begins[i]));
		for (unsigned int n = 0; n < 100000; n++) {
			char attribute[32];
			snprintf(attribute, sizeof(attribute), i == 0 ? " a%u='b'" : " %u", n);
			bytes_append(&xml, attribute, strlen(attribute));
		}
		assert_int_equal(s3_list_parse(xml.data, xml.len, &req, &out, &err), -EBADMSG);
		s3_list_release(&out);
		if (i != 4 && !strstr(err.msg, "a token is too long"))
			fail_msg("%s: %s", begins[i], err.msg);
	}
}

/* Items of ten bytes in the document must not take a gigabyte of memory. */
static void test_too_many_items(void **state)
{
	static const char item[] = "<Contents/>";
	const struct s3_list_query req = {.prefix = ""};
	struct s3_list_result out;
	auto_bytes struct bytes xml = {0};
	bytes_append(&xml, "<ListBucketResult>", 18);
	for (unsigned int i = 0; i <= 10 * STORE_PAGE_MAX; i++)
		bytes_append(&xml, item, sizeof(item) - 1);
	bytes_append(&xml, "</ListBucketResult>", 19);
	assert_int_equal(s3_list_parse(xml.data, xml.len, &req, &out, NULL), -EIO);
	s3_list_release(&out);
}

static void test_errors(void **state)
{
	static const struct {
		const char *xml;
		bool is_error;
		const char *code, *message, *request_id, *region;
	} cases[] = {
		{HEAD "<Error><Code>NoSuchKey</Code><Message>Not &lt;here&gt;</Message><Key>a</Key>"
		      "<RequestId>4442587FB7D0A2F9</RequestId><HostId>x</HostId></Error>",
		 true, "NoSuchKey", "Not <here>", "4442587FB7D0A2F9", ""},
		{"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></"
		 "Error>",
		 true, "AuthorizationHeaderMalformed", "", "", "eu-west-1"},
		{"<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error>"
		 "<Type>Sender</Type><Code>AccessDenied</Code><Message>no</Message></Error>"
		 "<RequestId>1</RequestId></ErrorResponse>",
		 true, "AccessDenied", "no", "1", ""},
		/* keys that XML does not allow */
		{"<Error><Code>NoSuchKey</Code><Key>\x01\xff&#x1;&amp;</Key><RequestId>1</"
		 "RequestId>"
		 "</Error>",
		 true, "NoSuchKey", "", "1", ""},
		{"<Error><Code>NoSuchKey</Code><Key>\x01", false, "", "", "", ""},
		{"<html>\x01<body>502</body></html>", false, "", "", "", ""},
		{"<Error/>", true, "", "", "", ""},
		{"<ListBucketResult><Code>x</Code></ListBucketResult>", false, "", "", "", ""},
		{"<Error><Code>NoSuchKey</Code>", false, "", "", "", ""},
		{"<html><body>502</body></html>", false, "", "", "", ""},
		{"", false, "", "", "", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_error e;
		assert_int_equal(s3_error_parse(cases[i].xml, strlen(cases[i].xml), &e),
				 cases[i].is_error);
		assert_string_equal(e.code, cases[i].code);
		assert_string_equal(e.message, cases[i].message);
		assert_string_equal(e.request_id, cases[i].request_id);
		assert_string_equal(e.region, cases[i].region);
	}
}

#define UPLOADS(text) "<ListMultipartUploadsResult xmlns='x'>" text "</ListMultipartUploadsResult>"
#define UPLOAD(key, id)                                                                            \
	"<Upload><Key>" key "</Key><UploadId>" id "</UploadId>"                                    \
	"<Initiated>2009-10-12T17:50:30.000Z</Initiated><Owner><ID>me</ID></Owner></Upload>"
#define URL "<EncodingType>url</EncodingType>"
#define END "<IsTruncated>false</IsTruncated>"

static void test_uploads(void **state)
{
	static const struct {
		const char *xml;
		int rc;
		const char *found; /* "key=id " */
		bool more;
	} cases[] = {
		{UPLOADS(END), 0, "", false},
		{UPLOADS(URL UPLOAD("a%20/b%2Bc", "1") END), 0, "a /b+c=1 ", false},
		{UPLOADS(UPLOAD("a%20", "1") UPLOAD("a%20", "2") END), 0, "a%20=1 a%20=2 ", false},
		/* Other prefixes, and what is no key. */
		{UPLOADS(UPLOAD("b", "1") UPLOAD("a/../c", "2") UPLOAD("a", "3") END), 0, "a=3 ",
		 false},
		{UPLOADS(URL UPLOAD("a%zz", "1") END), 0, "", false},
		{UPLOADS(UPLOAD("a", "1") "<NextKeyMarker>mast</NextKeyMarker>"
					  "<NextUploadIdMarker>1</NextUploadIdMarker>"
					  "<IsTruncated>true</IsTruncated>"),
		 0, "a=1 ", true},
		{UPLOADS(UPLOAD("a", "1") "<NextKeyMarker>last</NextKeyMarker>"
					  "<NextUploadIdMarker>91</NextUploadIdMarker>"
					  "<IsTruncated>true</IsTruncated>"),
		 0, "a=1 ", true},
		/* What follows would be what came before. */
		{UPLOADS(UPLOAD("a", "1") "<NextKeyMarker>a</NextKeyMarker>"
					  "<NextUploadIdMarker>91</NextUploadIdMarker>"
					  "<IsTruncated>true</IsTruncated>"),
		 -EIO, NULL, false},
		/* More follows, but not after what. */
		{UPLOADS(UPLOAD("a", "1") "<IsTruncated>true</IsTruncated>"), -EIO, NULL, false},
		{UPLOADS("<NextKeyMarker>last</NextKeyMarker>"
			 "<NextUploadIdMarker>9</NextUploadIdMarker><IsTruncated>true</"
			 "IsTruncated>"),
		 -EIO, NULL, false},
		/* It does not say whether more follows. */
		{UPLOADS(UPLOAD("a", "1")), -EIO, NULL, false},
		{UPLOADS("<Upload><Key>a</Key></Upload>" END), -EIO, NULL, false},
		{UPLOADS(UPLOAD("a", "") END), -EIO, NULL, false},
		{"<ListBucketResult>" END "</ListBucketResult>", -EIO, NULL, false},
		{"<ListMultipartUploadsResult>", -EIO, NULL, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct store_upload_page page = {.next_key = "last", .next_id = "9"};
		struct err err = ERR_INIT;
		char found[256] = "";
		const int rc =
			s3_uploads_parse(cases[i].xml, strlen(cases[i].xml), "a", &page, &err);
		if (rc != cases[i].rc)
			fail_msg("case %zu: %d %s", i, rc, err.msg);
		for (size_t k = 0; !rc && k < page.n; k++) {
			snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s=%s ",
				 page.v[k].key, page.v[k].id);
			assert_int_equal(page.v[k].began_ns, INT64_C(1255369830000000000));
		}
		if (!rc) {
			assert_string_equal(found, cases[i].found);
			assert_int_equal(page.more, cases[i].more);
		}
		arena_free(page.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_where_to_go_on),
		cmocka_unit_test(test_what_is_taken),
		cmocka_unit_test(test_nothing_can_be_read),
		cmocka_unit_test(test_disorder),
		cmocka_unit_test(test_bad_listings),
		cmocka_unit_test(test_text_too_long),
		cmocka_unit_test(test_too_many_items),
		cmocka_unit_test(test_token_too_long),
		cmocka_unit_test(test_bad_items),
		cmocka_unit_test(test_bad_items_below_a_prefix),
		cmocka_unit_test(test_key_too_long),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_what_is_left_out_silently),
		cmocka_unit_test(test_uploads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
