/* SPDX-License-Identifier: Apache-2.0 */
/* Listings: an accepted page satisfies the contract of a store. Written as XML with an additional
 * bad item and read again, it is the same page. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "s3/list_xml.h"
#include <aws/uri.h>

/* Times are not compared, because the page is written without dates. */
static void write_page(const struct store_page *page, struct str *xml)
{
	str_add(xml, "<ListBucketResult><EncodingType>url</EncodingType>"
		     "<Contents><Key>a%00</Key><Size>1</Size></Contents>");
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		str_add(xml, item->is_prefix ? "<CommonPrefixes><Prefix>" : "<Contents><Key>");
		uri_encode(xml, item->key, strlen(item->key), true);
		if (item->is_prefix)
			str_add(xml, "</Prefix></CommonPrefixes>");
		else
			str_addf(xml, "</Key><Size>%" PRIu64 "</Size></Contents>", item->meta.size);
	}
	str_addf(xml, "<IsTruncated>%s</IsTruncated></ListBucketResult>",
		 page->more ? "true" : "false");
}

/* The text is written to the log. */
static void check_left_out(const struct s3_list_result *result)
{
	const char *text = str_text(&result->first_left_out);
	assert((result->n_left_out > 0) == (text[0] != '\0'));
	assert(strlen(text) < 700);
	for (; *text; text++)
		assert(*text >= ' ' && *text < 0x7f);
}

static void check(const struct s3_list_query *req, const struct store_page *page)
{
	for (size_t i = 0; i < page->n; i++) {
		const struct store_item *item = &page->items[i];
		const size_t n = strlen(item->key);
		assert(item->is_prefix ? req->delimit && item->key[n - 1] == '/'
				       : store_key_ok(item->key));
		assert(strncmp(item->key, req->prefix, strlen(req->prefix)) == 0);
		assert(!req->start_after || strcmp(item->key, req->start_after) > 0);
		assert(i == 0 || strcmp(page->items[i - 1].key, item->key) < 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct s3_list_query reqs[] = {
		{.prefix = "", .delimit = true},
		{.prefix = "a"},
		{.prefix = "", .start_after = "b", .delimit = true},
	};
	for (size_t i = 0; i < sizeof(reqs) / sizeof(reqs[0]); i++) {
		struct s3_list_result first, second;
		struct str xml = {0};
		if (s3_list_parse(data, size, &reqs[i], &first, NULL) == 0) {
			check(&reqs[i], &first.page);
			check_left_out(&first);
			write_page(&first.page, &xml);
			assert(str_ok(&xml));
			assert(s3_list_parse(xml.b.data, xml.b.len, &reqs[i], &second, NULL) == 0);
			assert(second.n_left_out == 1);
			assert(second.page.n == first.page.n);
			assert(second.page.more == first.page.more);
			for (size_t k = 0; k < first.page.n; k++) {
				const struct store_item *a = &first.page.items[k];
				const struct store_item *b = &second.page.items[k];
				assert(strcmp(a->key, b->key) == 0);
				assert(a->meta.size == b->meta.size);
			}
			s3_list_release(&second);
		}
		s3_list_release(&first);
		str_release(&xml);
	}
	return 0;
}
