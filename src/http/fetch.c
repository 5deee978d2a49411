/* SPDX-License-Identifier: Apache-2.0 */
/* One blocking request with its own libcurl handle. No shared state. */
#include <http/fetch.h>

#include <curl/curl.h>
#include <errno.h>
#include <string.h>

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct str *body = arg;
	n *= size;
	if (n > HTTP_FETCH_BODY_MAX - body->b.len)
		return 0;
	str_addn(body, bytes, n);
	return str_ok(body) ? n : 0;
}

static struct curl_slist *make_header(const struct http_fetch *req)
{
	struct curl_slist *header = curl_slist_append(NULL, "Accept: application/json, text/xml");
	for (size_t i = 0; header && i < 4 && req->header[i]; i++) {
		struct curl_slist *longer = curl_slist_append(header, req->header[i]);
		if (!longer)
			curl_slist_free_all(header);
		header = longer;
	}
	return header;
}

static void prepare(CURL *easy, const struct http_fetch *req, struct curl_slist *header,
		    struct str *body, char *why)
{
	curl_easy_setopt(easy, CURLOPT_URL, req->url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, header);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)req->timeout_ms);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
	if (req->no_proxy)
		curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	if (req->ca_bundle)
		curl_easy_setopt(easy, CURLOPT_CAINFO, req->ca_bundle);
	if (req->body)
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, req->body);
	else if (strcmp(req->method, "GET") != 0)
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, req->method);
}

int http_fetch(const struct http_fetch *req, long *status, struct str *body, struct err *err)
{
	char why[CURL_ERROR_SIZE] = "";
	CURL *easy = curl_easy_init();
	struct curl_slist *header = make_header(req);
	int rc = -ENOMEM;
	if (easy && header) {
		prepare(easy, req, header, body, why);
		const CURLcode result = curl_easy_perform(easy);
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, status);
		rc = result == CURLE_OK ? 0 : result == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EIO;
		if (rc)
			err_set(err, rc, "%s: %s", req->url,
				why[0] ? why : curl_easy_strerror(result));
	} else {
		err_set(err, rc, "%s: out of memory", req->url);
	}
	curl_slist_free_all(header);
	if (easy)
		curl_easy_cleanup(easy);
	return rc;
}
