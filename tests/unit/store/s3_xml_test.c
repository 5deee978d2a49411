/* SPDX-License-Identifier: Apache-2.0 */
/* Listings and error documents, good and bad. */
#include "fixture.h"

#include "s3_error_xml.h"
#include "s3_list_xml.h"
#include "xml.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
#define LIST(members)                                                                              \
	HEAD "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" members        \
	     "</ListBucketResult>"
#define OBJECT(key)                                                                                \
	"<Contents><Key>" key "</Key><LastModified>2009-10-12T17:50:30.123Z</LastModified>"        \
	"<ETag>&quot;abc&quot;</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass>"     \
	"<Owner><ID>1</ID></Owner></Contents>"
#define PREFIX(key) "<CommonPrefixes><Prefix>" key "</Prefix></CommonPrefixes>"
#define URL	    "<EncodingType>url</EncodingType>"

static int parse(const char *xml, const struct store_list *req, struct s3_list_result *out,
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
	const struct store_list req = {.prefix = "", .delimit = true, .max = 10};
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

static void test_what_is_taken(void **state)
{
	static const struct {
		const char *xml;
		struct store_list req;
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
		/* what no store may give */
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

static void test_bad_listings(void **state)
{
	static const struct {
		const char *defect, *xml;
	} cases[] = {
		{"empty", ""},
		{"no XML", "Internal Server Error"},
		{"another root", HEAD "<Error><Code>SlowDown</Code></Error>"},
		{"cut", HEAD "<ListBucketResult><Contents><Key>a</Key>"},
		{"size no number", LIST("<Contents><Key>a</Key><Size>1x</Size></Contents>")},
		{"size too large",
		 LIST("<Contents><Key>a</Key><Size>18446744073709551616</Size></Contents>")},
		{"size empty", LIST("<Contents><Key>a</Key><Size/></Contents>")},
		{"bad escape", LIST(OBJECT("a%2") URL)},
		{"encoded NUL", LIST(OBJECT("a%00b") URL)},
		{"entity", "<!DOCTYPE x [<!ENTITY e \"aaaa\">]><ListBucketResult>&e;"
			   "</ListBucketResult>"},
		{"too deep", LIST("<a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a>")},
		{"a name too long",
		 LIST("<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/>")},
	};
	const struct store_list req = {.prefix = ""};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_list_result out;
		struct err err = ERR_INIT;
		int rc = s3_list_parse(cases[i].xml, strlen(cases[i].xml), &req, &out, &err);
		s3_list_release(&out);
		if (rc != -EBADMSG || err.code != rc)
			fail_msg("%s: %d %s", cases[i].defect, rc, err.msg);
	}
}

static void test_text_too_long(void **state)
{
	enum { N = XML_TEXT_MAX + 100 };
	auto_str struct str xml = {0};
	struct s3_list_result out;
	const struct store_list req = {.prefix = ""};
	str_add(&xml, "<ListBucketResult><Contents><Key>");
	for (int i = 0; i < N; i++)
		str_add(&xml, "a");
	str_add(&xml, "</Key></Contents></ListBucketResult>");
	assert_int_equal(s3_list_parse(xml.b.data, xml.b.len, &req, &out, NULL), -EBADMSG);
	s3_list_release(&out);
}

/* Not kept to its end. */
static void test_token_too_long(void **state)
{
	static const char *const begins[] = {"<ListBucketResult", "<!--", "<?x ",
					     "<ListBucketResult a=\"", "<ListBucketResult></a"};
	const struct store_list req = {.prefix = ""};
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

/* Ten bytes each in the document: they must not become a gigabyte. */
static void test_too_many_items(void **state)
{
	static const char item[] = "<Contents/>";
	const struct store_list req = {.prefix = ""};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),	       cmocka_unit_test(test_what_is_taken),
		cmocka_unit_test(test_bad_listings),   cmocka_unit_test(test_text_too_long),
		cmocka_unit_test(test_too_many_items), cmocka_unit_test(test_token_too_long),
		cmocka_unit_test(test_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
