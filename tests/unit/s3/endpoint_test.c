/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoint, region and addressing style: the URL of a request for a bucket. */
#include "store_fixture.h"

#include "s3/s3_internal.h"

static const char *no_variables(const struct aws_environment *w, const char *name)
{
	(void)w;
	(void)name;
	return NULL;
}

/* ctx: the config file's path. */
static const char *config_file(const struct aws_environment *w, const char *name)
{
	return strcmp(name, "AWS_CONFIG_FILE") == 0 ? w->ctx : NULL;
}

static int init(struct s3_endpoint *p, const struct store_s3_options *opt)
{
	const struct aws_environment world = {.getenv = no_variables};
	memset(p, 0, sizeof(*p));
	return s3_endpoint_init(p, &world, opt, NULL);
}

/* "scheme host path" of the object "k y", or of the bucket. */
static void assert_parts(const struct s3_endpoint *p, const char *key, const char *want)
{
	char got[512];
	auto_str struct str path = {0};
	s3_endpoint_path(p, key, &path);
	snprintf(got, sizeof(got), "%s %s %s", p->tls ? "https" : "http", str_text(&p->host),
		 str_text(&path));
	assert_string_equal(got, want);
}

static void test_addresses(void **state)
{
	static const struct {
		struct store_s3_options opt;
		const char *object, *bucket;
	} cases[] = {
		{{.bucket = "data"},
		 "https data.s3.us-east-1.amazonaws.com /k%20y",
		 "https data.s3.us-east-1.amazonaws.com /"},
		{{.bucket = "data", .region = "cn-north-1"},
		 "https data.s3.cn-north-1.amazonaws.com.cn /k%20y",
		 "https data.s3.cn-north-1.amazonaws.com.cn /"},
		/* Amazon's certificate covers only one label. */
		{{.bucket = "my.data"},
		 "https s3.us-east-1.amazonaws.com /my.data/k%20y",
		 "https s3.us-east-1.amazonaws.com /my.data"},
		{{.bucket = "Data"},
		 "https s3.us-east-1.amazonaws.com /Data/k%20y",
		 "https s3.us-east-1.amazonaws.com /Data"},
		{{.bucket = "data", .style = STORE_S3_STYLE_PATH},
		 "https s3.us-east-1.amazonaws.com /data/k%20y",
		 "https s3.us-east-1.amazonaws.com /data"},
		{{.bucket = "data", .endpoint = "http://127.0.0.1:7480/"},
		 "http 127.0.0.1:7480 /data/k%20y",
		 "http 127.0.0.1:7480 /data"},
		{{.bucket = "data", .endpoint = "http://[::1]:7480"},
		 "http [::1]:7480 /data/k%20y",
		 "http [::1]:7480 /data"},
		{{.bucket = "data", .endpoint = "http://localhost:7480"},
		 "http localhost:7480 /data/k%20y",
		 "http localhost:7480 /data"},
		{{.bucket = "data", .endpoint = "https://s3.example.org/a/b"},
		 "https data.s3.example.org /a/b/k%20y",
		 "https data.s3.example.org /a/b/"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_endpoint p;
		assert_int_equal(init(&p, &cases[i].opt), 0);
		assert_parts(&p, "k y", cases[i].object);
		assert_parts(&p, NULL, cases[i].bucket);
		s3_endpoint_release(&p);
	}
}

static void test_what_cannot_be(void **state)
{
	static const struct store_s3_options cases[] = {
		{.bucket = NULL},
		{.bucket = ""},
		{.bucket = ".."},
		{.bucket = "a/b"},
		{.bucket = "a b"},
		{.bucket = "a?b"},
		{.bucket = "data", .region = ""},
		{.bucket = "data", .region = "evil.example/"},
		{.bucket = "data", .endpoint = "gopher://x"},
		{.bucket = "data", .endpoint = "http://"},
		{.bucket = "data", .endpoint = "http://user@host"},
		{.bucket = "data", .endpoint = "http://host/?a"},
		{.bucket = "data", .endpoint = "http://host:65536"},
		{.bucket = "data", .endpoint = "http://host:port/7"},
		{.bucket = "data", .endpoint = "http://[::1]:99999999999999999999"},
		{.bucket = "data", .endpoint = "http://h:0"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_endpoint p;
		assert_int_equal(init(&p, &cases[i]), -EINVAL);
		s3_endpoint_release(&p);
	}
}

static void test_another_region(void **state)
{
	struct s3_endpoint p;
	assert_int_equal(init(&p, &(struct store_s3_options){.bucket = "data"}), 0);
	assert_int_equal(s3_endpoint_set_region(&p, "eu-west-1"), 0);
	assert_parts(&p, NULL, "https data.s3.eu-west-1.amazonaws.com /");
	s3_endpoint_release(&p);
	assert_int_equal(init(&p, &(struct store_s3_options){.bucket = "data",
							     .endpoint = "http://127.0.0.1"}),
			 0);
	assert_int_equal(s3_endpoint_set_region(&p, "eu-west-1"), 0);
	assert_parts(&p, NULL, "http 127.0.0.1 /data");
	assert_string_equal(str_text(&p.region), "eu-west-1");
	s3_endpoint_release(&p);
}

static void test_redirects(void **state)
{
	static const struct {
		const char *endpoint, *location, *want; /* NULL: the redirect is not followed */
	} cases[] = {
		{"http://127.0.0.1", "http://127.0.0.2:8/data?list-type=2",
		 "http 127.0.0.2:8 /data"},
		{"http://127.0.0.1", "http://127.0.0.2/data/", "http 127.0.0.2 /data"},
		{"http://127.0.0.1", "http://other/a/b/data?x#y", "http other /a/b/data"},
		{"http://127.0.0.1", "https://127.0.0.2/data", "https 127.0.0.2 /data"},
		{"http://127.0.0.1", "http://data.s3.example.org/", "http data.s3.example.org /"},
		{"http://127.0.0.1", "http://data.s3.example.org", "http data.s3.example.org /"},
		{"https://127.0.0.1", "https://data.s3.example.org?list-type=2",
		 "https data.s3.example.org /"},
		/* A redirect from TLS to plain HTTP. */
		{"https://127.0.0.1", "http://127.0.0.2/data", NULL},
		/* The location has another bucket, or none. */
		{"http://127.0.0.1", "http://127.0.0.2/", NULL},
		{"http://127.0.0.1", "http://127.0.0.2", NULL},
		{"http://127.0.0.1", "http://127.0.0.2/metadata", NULL},
		{"http://127.0.0.1", "http://127.0.0.2/data/object", NULL},
		{"http://127.0.0.1", "/data", NULL},
		{"http://127.0.0.1", "", NULL},
		{"http://127.0.0.1", "ftp://127.0.0.2/data", NULL},
		{"http://127.0.0.1", "http:///data", NULL},
		{"http://127.0.0.1", "http://data./", NULL},
		{"http://127.0.0.1", "http://user@127.0.0.2/data", NULL},
		{"http://127.0.0.1", "http://a b/data", NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_endpoint p;
		const struct store_s3_options opt = {.bucket = "data",
						     .endpoint = cases[i].endpoint};
		assert_int_equal(init(&p, &opt), 0);
		const int rc = s3_endpoint_redirect(&p, cases[i].location, false);
		if (rc != (cases[i].want ? 0 : -EINVAL))
			fail_msg("%s: %d", cases[i].location, rc);
		if (rc == 0)
			assert_parts(&p, NULL, cases[i].want);
		s3_endpoint_release(&p);
	}
}

static void test_signed_redirects(void **state)
{
	static const struct {
		const char *endpoint, *location;
		bool followed;
	} cases[] = {
		{"http://store", "http://store/data", true},
		{"http://store:80", "http://STORE:81/data", true},
		{"http://store", "https://store/data", true},
		{"http://[::1]:80", "http://[::1]:81/data", true},
		{"http://store.example.org", "http://eu.store.example.org/data", true},
		{"http://store.example.org", "http://data.store.example.org", true},
		{"http://store.example.org", "http://data.eu.store.example.org", true},
		{"http://s3.amazonaws.com", "http://s3-eu-west-1.amazonaws.com/data", true},
		{"http://s3.amazonaws.com", "http://data.s3.eu-west-1.amazonaws.com/", true},
		{NULL, "https://data.s3.eu-west-1.amazonaws.com/", true},
		{"http://store", "http://other/data", false},
		{"http://store", "http://notstore/data", false},
		{"http://store", "http://store.evil.org/data", false},
		{"http://store.example.org", "http://evil.org/data", false},
		{"http://store.example.org", "http://evil.org/store.example.org/data", false},
		{"http://store.example.org", "http://evil.org#.store.example.org/data", false},
		{"http://store.example.org", "http://data.evil.org/", false},
		{"http://[::1]", "http://[::2]/data", false},
		{"http://127.0.0.1", "http://127.0.0.2/data", false},
		{"http://s3.amazonaws.com", "http://s3.notamazonaws.com/data", false},
		{"http://store", "http://s3.amazonaws.com/data", false},
		{NULL, "https://evil.org/data", false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_endpoint p;
		const struct store_s3_options opt = {.bucket = "data",
						     .endpoint = cases[i].endpoint};
		assert_int_equal(init(&p, &opt), 0);
		const int rc = s3_endpoint_redirect(&p, cases[i].location, true);
		if (rc != (cases[i].followed ? 0 : -EINVAL))
			fail_msg("%s: %d", cases[i].location, rc);
		s3_endpoint_release(&p);
	}
}

/* The bucket is moved to the path if the host does not know it as part of the host. */
static void test_path_instead(void **state)
{
	static const struct {
		struct store_s3_options opt;
		bool is_guess;
		const char *want;
	} cases[] = {
		{{.bucket = "data", .endpoint = "https://s3.example.org:8/a/"},
		 true,
		 "https s3.example.org:8 /a/data/k%20y"},
		{{.bucket = "my.data", .endpoint = "https://s3.example.org"},
		 false,
		 "https s3.example.org /my.data/k%20y"},
		{{.bucket = "data",
		  .endpoint = "https://s3.example.org",
		  .style = STORE_S3_STYLE_VIRTUAL},
		 false,
		 "https s3.example.org /data/k%20y"},
		{{.bucket = "data"}, false, "https s3.us-east-1.amazonaws.com /data/k%20y"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_endpoint p;
		assert_int_equal(init(&p, &cases[i].opt), 0);
		assert_int_equal(s3_endpoint_is_guess(&p), cases[i].is_guess);
		assert_int_equal(s3_endpoint_use_path(&p), 0);
		assert_false(s3_endpoint_is_guess(&p));
		assert_parts(&p, "k y", cases[i].want);
		s3_endpoint_release(&p);
	}
}

static void test_bucket_in_the_endpoint(void **state)
{
	static const struct {
		const char *endpoint;
		int rc;
		const char *want;
	} cases[] = {
		{"http://127.0.0.1:1/data", 0, "http 127.0.0.1:1 /data/k%20y"},
		{"http://127.0.0.1:1/a/data/", 0, "http 127.0.0.1:1 /a/data/k%20y"},
		{"http://127.0.0.1:1/data/data", 0, "http 127.0.0.1:1 /data/data/k%20y"},
		{"http://127.0.0.1:1/mydata", 1, "http 127.0.0.1:1 /mydata/data/k%20y"},
		{"http://127.0.0.1:1", 1, "http 127.0.0.1:1 /data/k%20y"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct store_s3_options opt = {.bucket = "data",
						     .endpoint = cases[i].endpoint};
		struct s3_endpoint p;
		assert_int_equal(init(&p, &opt), 0);
		assert_int_equal(s3_endpoint_drop_bucket(&p), cases[i].rc);
		assert_parts(&p, "k y", cases[i].want);
		s3_endpoint_release(&p);
	}
}

/* The endpoint of S3 precedes that of all services; the endpoint of another service is not used. */
static void test_endpoints_of_a_profile(void **state)
{
	static const struct {
		const char *config, *want;
	} cases[] = {
		{"[default]\nendpoint_url = http://10.0.0.1\n", "http 10.0.0.1 /data"},
		{"[services uni]\ns3 =\n  endpoint_url = http://10.0.0.2\nsts =\n"
		 "  endpoint_url = http://10.0.0.3\n"
		 "[default]\nservices = uni\nendpoint_url = http://10.0.0.1\n",
		 "http 10.0.0.2 /data"},
		{"[services uni]\nsts =\n  endpoint_url = http://10.0.0.3\n"
		 "[default]\nservices = uni\nendpoint_url = http://10.0.0.1\n",
		 "http 10.0.0.1 /data"},
		{"[services uni]\ns3 =\n  endpoint_url = http://10.0.0.2\n"
		 "[default]\nservices = other\nendpoint_url = http://10.0.0.1\n",
		 "http 10.0.0.1 /data"},
	};
	char path[] = "/tmp/s3_endpoint_test.XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	const struct aws_environment world = {.getenv = config_file, .ctx = path};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct s3_endpoint p = {0};
		write_file(path, cases[i].config);
		assert_int_equal(s3_endpoint_init(&p, &world,
						  &(struct store_s3_options){.bucket = "data"},
						  NULL),
				 0);
		assert_parts(&p, NULL, cases[i].want);
		s3_endpoint_release(&p);
	}
	unlink(path);
}

static void test_region_names(void **state)
{
	assert_true(s3_region_ok("eu-west-1"));
	assert_false(s3_region_ok(""));
	assert_false(s3_region_ok("eu\r\nX: y"));
	assert_false(s3_region_ok("evil.org/"));
	assert_false(s3_region_ok("abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz"));
}

/* The path of the certificates stays valid after a change of the directory. */
static void test_certificates(void **state)
{
	struct s3_endpoint p;
	struct store_s3_options opt = {.bucket = "data", .ca_bundle = "."};
	char *here = getcwd(NULL, 0);
	assert_int_equal(init(&p, &opt), 0);
	assert_string_equal(str_text(&p.ca_bundle), here);
	s3_endpoint_release(&p);
	opt.ca_bundle = "/no/such/file";
	assert_int_equal(init(&p, &opt), -ENOENT);
	s3_endpoint_release(&p);
	free(here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_what_cannot_be),
		cmocka_unit_test(test_another_region),
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_signed_redirects),
		cmocka_unit_test(test_region_names),
		cmocka_unit_test(test_certificates),
		cmocka_unit_test(test_path_instead),
		cmocka_unit_test(test_bucket_in_the_endpoint),
		cmocka_unit_test(test_endpoints_of_a_profile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
