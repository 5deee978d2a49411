/* SPDX-License-Identifier: Apache-2.0 */
/* The libcurl side of one call. Everything here runs in the I/O thread. */
#include "call.h"

#include <curl/curl.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

_Static_assert(HTTP_REASON_MAX == CURL_ERROR_SIZE, "libcurl writes its reason into a call");

/* ---- the answer's header ---- */

static void report_header(struct http_call *call, char *line, size_t n)
{
	char *colon = memchr(line, ':', n);
	if (!colon || !call->on_header)
		return;
	char *value = colon + 1;
	char *end = line + n;
	while (end > value && strchr(" \t\r\n", end[-1]))
		end--;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	*colon = '\0';
	*end = '\0';
	call->on_header(call, line, value);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
	enum { LINE_MAX_ = 4096 };
	struct http_call *call = arg;
	char line[LINE_MAX_];
	n *= size;
	if (n >= 5 && strncasecmp(bytes, "HTTP/", 5) == 0) {
		/* An interim answer (100) or an earlier attempt of libcurl may precede this. */
		call->answer.len = 0;
		call->populated = 0;
		call->content_length = -1;
		call->answering = true;
		curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &call->status);
	} else if (n < sizeof(line) && !memchr(bytes, '\0', n)) {
		report_header(call, memcpy(line, bytes, n), n);
	}
	if (n <= 2)
		http_socket_note_received(call->sockets, call->fd);
	return n;
}

/* ---- the answer's body ---- */

static uint64_t body_max(const struct http_call *call)
{
	if (call->status >= 300)
		return HTTP_ERROR_BODY_MAX;
	if (call->ranged && call->status == 200)
		return min_u64(call->body_max, call->keep);
	return call->body_max;
}

/* Reserves the announced length of the body at once, up to a plausible size. */
static int reserve(struct http_call *call, size_t n)
{
	enum { PLAUSIBLE_MAX = 64 << 20 };
	curl_off_t announced = -1;
	if (call->answer.cap > 0)
		return bytes_reserve(&call->answer, n);
	curl_easy_getinfo(call->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
	uint64_t room = announced > 0 ? (uint64_t)announced : 0;
	room = min_u64(min_u64(room, body_max(call)), PLAUSIBLE_MAX);
	return bytes_reserve(&call->answer, (size_t)max_u64(room, n));
}

/* Populates new memory in large pieces. Otherwise page faults would be half the work of this
 * thread. Memory is populated only shortly before it is used, because a server may announce more
 * than it sends. */
static void populate(struct http_call *call, size_t n)
{
#ifdef MADV_POPULATE_WRITE
	enum { PIECE = 256 << 10, PAGE = 4096 };
	const struct bytes *b = &call->answer;
	if (b->cap < PIECE || b->len + n <= call->populated)
		return;
	const size_t end = min_u64(b->len + max_u64(n, PIECE), b->cap);
	const uintptr_t from = (uintptr_t)(b->data + b->len) & ~(uintptr_t)(PAGE - 1);
	const uintptr_t to = align_u64((uintptr_t)(b->data + end), PAGE);
	/* Older kernels do not support this; then page faults populate the memory. */
	if (madvise((void *)from, to - from, MADV_POPULATE_WRITE) == 0)
		call->populated = end;
	else
		call->populated = b->cap;
#endif
}

/* Appends a part of the body to the answer. */
static int append(struct http_call *call, const char *bytes, size_t n)
{
	if (n == 0)
		return 0;
	if (reserve(call, n))
		return -ENOMEM;
	populate(call, n);
	return bytes_append(&call->answer, bytes, n);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct http_call *call = arg;
	const size_t received = n * size;
	http_socket_note_received(call->sockets, call->fd);
	call->received += received;
	call->sockets->received += received;
	n = received;
	if (call->ranged && call->status == 200 && call->skipped < call->skip) {
		const uint64_t skip = min_u64(call->skip - call->skipped, n);
		call->skipped += skip;
		bytes += skip;
		n -= (size_t)skip;
	}
	const uint64_t room = body_max(call) - call->answer.len;
	if (n > room) {
		if (call->status >= 300) {
			call->cut = call->received > HTTP_ERROR_DRAIN_MAX;
		} else {
			call->cut =
				call->ranged && call->status == 200 && call->keep <= call->body_max;
			call->too_long = !call->cut;
		}
		n = (size_t)room;
	}
	if (append(call, bytes, n))
		return 0;
	return call->cut || call->too_long ? 0 : received;
}

/* ---- the request's body ---- */

/* Reads what comes next of a body that is not in memory. */
static size_t read_part(struct http_call *call, char *to, size_t most)
{
	const struct source_part *part = call->part;
	const size_t n = (size_t)min_u64(most, part->n - call->sent);
	struct err err = ERR_INIT;
	if (source_read(part->source, part->offset + call->sent, to, n, &err)) {
		/* libcurl does not write its own reason over this one. */
		curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, NULL);
		snprintf(call->reason, sizeof(call->reason), "%.*s", HTTP_REASON_MAX - 1, err.msg);
		call->unread = true;
		return CURL_READFUNC_ABORT;
	}
	call->sent += n;
	return n;
}

static size_t copy_pieces(struct http_call *call, char *to, size_t n)
{
	uint64_t at = call->sent;
	size_t copied = 0;
	for (size_t i = 0; i < call->n_pieces && copied < n; i++) {
		const struct piece *piece = &call->pieces[i];
		if (at < piece->n) {
			const size_t some = (size_t)min_u64(piece->n - at, n - copied);
			memcpy(to + copied, (const char *)piece->data + at, some);
			copied += some;
			at = 0;
		} else {
			at -= piece->n;
		}
	}
	call->sent += copied;
	return copied;
}

static size_t on_send(char *to, size_t size, size_t n, void *arg)
{
	struct http_call *call = arg;
	return call->part ? read_part(call, to, n * size) : copy_pieces(call, to, n * size);
}

/* libcurl sends the body again on a new connection if a kept connection is dead. */
static int on_rewind(void *arg, curl_off_t offset, int origin)
{
	struct http_call *call = arg;
	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > call->body_len)
		return CURL_SEEKFUNC_FAIL;
	call->resent |= call->sent > 0;
	call->sent = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* ---- setup and result ---- */

/* Called when libcurl has a connection and is about to send the request. */
static int on_connection(void *arg, char *remote, char *local, int remote_port, int local_port)
{
	struct http_call *call = arg;
	call->fd =
		http_socket_between(call->sockets, local_port, remote, remote_port, call->serial);
	call->acknowledged = false;
	call->attempts++;
	return CURL_PREREQFUNC_OK;
}

static void prepare_method(struct http_call *call, CURL *easy)
{
	const bool is_post = strcmp(call->method, "POST") == 0;
	if (strcmp(call->method, "HEAD") == 0) {
		curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (is_post || strcmp(call->method, "PUT") == 0) {
		curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body_len);
		curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
		curl_easy_setopt(easy, CURLOPT_READDATA, call);
		curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind);
		curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
		curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
		if (is_post)
			curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "POST");
	} else if (strcmp(call->method, "GET") != 0) {
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
	}
}

/* Returns the size of the receive buffer. Each connection has one. A large buffer saves system
 * calls, a small one saves memory. */
static long receive_size(const struct http_call *call)
{
	enum { SMALL_BODY = 256 << 10, SMALL = 32 << 10, LARGE = 256 << 10 };
	return call->body_max > SMALL_BODY ? LARGE : SMALL;
}

/* Sets the options that are the same for all calls. */
static void set_constants(CURL *easy, struct http_sockets *sockets, const struct http_options *opt)
{
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)opt->connect_ms);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	if (opt->ca_bundle)
		curl_easy_setopt(easy, CURLOPT_CAINFO, opt->ca_bundle);
	http_sockets_attach(sockets, easy);
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	/* The answer of a proxy to CONNECT is not the server's. */
	curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connection);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
}

CURL *http_handle_new(struct http_sockets *sockets, const struct http_options *opt)
{
	CURL *easy = curl_easy_init();
	if (easy)
		set_constants(easy, sockets, opt);
	return easy;
}

/* Returns true if the next call may use the handle as it is, which saves the time to set all its
 * options. The options that http_call_prepare() sets for a GET are set for each call, so the next
 * one replaces them. A handle counts the repeated attempts of all its calls, which libcurl limits,
 * until it is reset. */
static bool leaves_nothing(const struct http_call *call)
{
	return call->end == HTTP_ANSWERED && strcmp(call->method, "GET") == 0 &&
	       call->attempts == 1;
}

void http_handle_renew(CURL *easy, const struct http_call *call, const struct http_options *opt)
{
	if (leaves_nothing(call)) {
		curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
		curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
		return;
	}
	curl_easy_reset(easy);
	set_constants(easy, call->sockets, opt);
}

int http_call_prepare(struct http_call *call, CURL *easy, struct http_sockets *sockets,
		      bool multiplexes)
{
	call->easy = easy;
	call->sockets = sockets;
	call->fd = -1;
	call->attempts = 0;
	call->content_length = -1;
	call->reason[0] = '\0';
	prepare_method(call, easy);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, receive_size(call));
	curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->header);
	/* With HTTP/2, a call waits for the connection that all calls share instead of opening one.
	 * With HTTP/1.1 this would cost the time of a handshake. */
	const bool opens_new = call->opens_connection || call->is_urgent;
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, multiplexes && !opens_new ? 1L : 0L);
	curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, opens_new ? 1L : 0L);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->reason);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	return curl_easy_setopt(easy, CURLOPT_URL, call->url) == CURLE_OK ? 0 : -ENOMEM;
}

static enum http_end end_of(const struct http_call *call, CURLcode result)
{
	if (call->unread)
		return HTTP_UNREAD;
	if (call->too_long)
		return HTTP_TOO_LONG;
	if (call->is_cancelled)
		return HTTP_CANCELLED;
	if (call->late)
		return HTTP_TIMED_OUT;
	switch (result) {
	case CURLE_OK:
		return HTTP_ANSWERED;
	case CURLE_PARTIAL_FILE:
		return HTTP_TRUNCATED;
	case CURLE_OPERATION_TIMEDOUT:
		return HTTP_TIMED_OUT;
	case CURLE_OUT_OF_MEMORY:
		return HTTP_NO_MEMORY;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_URL_MALFORMAT:
		return HTTP_REFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
		return HTTP_UNKNOWN;
	case CURLE_WRITE_ERROR:
		return call->cut ? HTTP_ANSWERED : HTTP_NO_MEMORY;
	default:
		return HTTP_BROKEN;
	}
}

void http_call_end(struct http_call *call, CURLcode result)
{
	curl_off_t announced = -1;
	call->end = end_of(call, result);
	curl_easy_getinfo(call->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
	call->content_length = announced;
	if (call->end == HTTP_ANSWERED) {
		call->reason[0] = '\0';
		return;
	}
	if (call->end == HTTP_UNREAD)
		return;
	if (call->is_cancelled)
		strcpy(call->reason, HTTP_CANCELLED_REASON);
	else if (call->late)
		strcpy(call->reason, call->answering ? "the server sends the body too slowly"
				     : call->sent < call->body_len
					     ? "the server receives the body too slowly"
					     : "no answer in time");
	else if (!call->reason[0])
		strncat(call->reason, curl_easy_strerror(result), sizeof(call->reason) - 1);
}

bool http_call_was_multiplexed(const struct http_call *call)
{
	long version = 0;
	curl_easy_getinfo(call->easy, CURLINFO_HTTP_VERSION, &version);
	return version == CURL_HTTP_VERSION_2_0;
}

/* The list and its texts are one block, because this happens for each request. */
int http_call_set_header(struct http_call *call, const struct http_header *header, size_t n)
{
	size_t size = n * sizeof(*call->header);
	for (size_t i = 0; i < n; i++)
		size += strlen(header[i].name) + strlen(header[i].value) + sizeof(": ");
	struct curl_slist *lines = n ? malloc(size) : NULL;
	if (!lines)
		return n ? -ENOMEM : 0;
	char *text = (char *)&lines[n];
	for (size_t i = 0; i < n; i++) {
		lines[i] = (struct curl_slist){text, i + 1 < n ? &lines[i + 1] : NULL};
		text = stpcpy(stpcpy(text, header[i].name), ": ");
		text = stpcpy(text, header[i].value) + 1;
	}
	call->header = lines;
	call->header_size = size;
	return 0;
}

void http_call_release(struct http_call *call)
{
	if (call->header)
		explicit_bzero(call->header, call->header_size);
	free(call->header);
	call->header = NULL;
	bytes_release(&call->answer);
	call->status = 0;
	call->sent = call->populated = 0;
	call->skipped = call->received = 0;
	call->answering = call->acknowledged = call->too_long = call->cut = call->late = false;
	call->is_cancelled = call->resent = call->unread = false;
	call->cancelled_ns = 0;
}
