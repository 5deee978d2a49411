/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_store FILE [CERTIFICATE KEY]: an S3 server that answers from memory, so that a benchmark
 * measures the mount and not its server. FILE has all objects, each as a line "LENGTH BUCKET/KEY"
 * and its bytes. With a certificate it speaks TLS.
 *
 * It knows GET and HEAD of objects, with ranges, If-Match and If-None-Match, both forms of
 * ListObjects, PUT with If-Match and If-None-Match and with a CRC-32C, which it compares, and
 * DELETE. Signatures are not checked. The delay and the log of the requests are those of
 * latency_proxy. It prints "port=N" and serves on loopback until SIGTERM, or until its parent ends.
 *
 * The bytes of objects are never freed, because an answer may be sending them.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <aws/digest.h>
#include <base/checksum.h>

enum { PAGE = 1000, THREADS = 2, CONNECTIONS = 1000, ETAG = MD5_HEX + 4, MARK = 64 };

static const char date[] = "Tue, 14 Nov 2023 22:13:20 GMT";
static const char mark_header[] = "x-amz-meta-hsmount-mark", crc_header[] = "x-amz-checksum-crc32c";

struct object {
	char *key; /* BUCKET/KEY */
	char *bytes;
	size_t n;
	char etag[ETAG]; /* with quotes */
	char mark[MARK];
};

static struct {
	pthread_rwlock_t lock; /* guards all of this */
	struct object *v;
	size_t n, puts;
} all = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* The body of a request. */
struct upload {
	char *bytes;
	size_t n, room;
};

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "memory_store: %s\n", why);
	exit(1);
}

/* ---- objects ---- */

static int by_key(const void *a, const void *b)
{
	const struct object *x = a, *y = b;
	return strcmp(x->key, y->key);
}

static void make_room(void)
{
	if ((all.n & (all.n + 1)) == 0)
		all.v = realloc(all.v, 2 * (all.n + 1) * sizeof(*all.v));
	if (!all.v)
		die("out of memory");
}

static void add(const char *key, size_t key_len, char *bytes, size_t n)
{
	char md5[MD5_HEX];
	make_room();
	if (digest_md5(&(struct piece){bytes, n}, 1, md5))
		die("out of memory");
	struct object *o = &all.v[all.n++];
	*o = (struct object){.key = strndup(key, key_len), .bytes = bytes, .n = n};
	snprintf(o->etag, sizeof(o->etag), "\"%s\"", md5);
}

static void load(const char *path)
{
	struct stat st;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die("cannot open the file");
	char *text = mmap(NULL, (size_t)st.st_size + 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		die("cannot map the file");
	const char *end = text + st.st_size;
	while (text < end) {
		char *key;
		const size_t n = strtoull(text, &key, 10);
		char *line = memchr(text, '\n', (size_t)(end - text));
		if (*key != ' ' || !line || n > (size_t)(end - line) - 1)
			die("the file is damaged");
		add(key + 1, (size_t)(line - key) - 1, line + 1, n);
		text = line + 1 + n;
	}
	qsort(all.v, all.n, sizeof(*all.v), by_key);
}

/* The first object whose key is not less. */
static size_t lower_bound(const char *key)
{
	size_t low = 0, high = all.n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (strcmp(all.v[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *c, unsigned int status, struct MHD_Response *r,
			      const char *etag, const char *range)
{
	MHD_add_response_header(r, "Last-Modified", date);
	MHD_add_response_header(r, "Accept-Ranges", "bytes");
	if (etag)
		MHD_add_response_header(r, "ETag", etag);
	if (range)
		MHD_add_response_header(r, "Content-Range", range);
	const enum MHD_Result rc = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return rc;
}

/* text: from malloc(). */
static enum MHD_Result answer_xml(struct MHD_Connection *c, unsigned int status, char *text)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	MHD_add_response_header(r, "Content-Type", "application/xml");
	return answer(c, status, r, NULL, NULL);
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned int status, const char *code)
{
	char *text;
	if (asprintf(&text, "<Error><Code>%s</Code></Error>", code) < 0)
		return MHD_NO;
	return answer_xml(c, status, text);
}

/* Changes [*first, *first + *n) to the part that "bytes=A-B", "bytes=A-" or "bytes=-N" names. */
static bool cut(const char *range, size_t *first, size_t *n)
{
	uint64_t a = 0, b = UINT64_MAX;
	if (sscanf(range, "bytes=-%" SCNu64, &b) == 1) {
		*first = b < *n ? *n - b : 0;
		*n -= *first;
		return true;
	}
	if (sscanf(range, "bytes=%" SCNu64 "-%" SCNu64, &a, &b) < 1 || a >= *n || b < a)
		return false;
	*first = a;
	*n = (b < *n ? b + 1 : *n) - a;
	return true;
}

static enum MHD_Result get_object(struct MHD_Connection *c, const char *key)
{
	const size_t i = lower_bound(key);
	if (i == all.n || strcmp(all.v[i].key, key) != 0)
		return refuse(c, MHD_HTTP_NOT_FOUND, "NoSuchKey");
	const struct object *o = &all.v[i];
	const char *match = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-Match");
	const char *known = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match");
	const char *range = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Range");
	size_t first = 0, n = o->n;
	char part[96];
	if (match && strcmp(match, o->etag) != 0)
		return refuse(c, MHD_HTTP_PRECONDITION_FAILED, "PreconditionFailed");
	if (known && strcmp(known, o->etag) == 0)
		return answer(c, MHD_HTTP_NOT_MODIFIED,
			      MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT),
			      o->etag, NULL);
	if (range && !cut(range, &first, &n))
		return refuse(c, MHD_HTTP_RANGE_NOT_SATISFIABLE, "InvalidRange");
	snprintf(part, sizeof(part), "bytes %zu-%zu/%zu", first, first + n - 1, o->n);
	struct MHD_Response *r =
		MHD_create_response_from_buffer(n, o->bytes + first, MHD_RESPMEM_PERSISTENT);
	if (o->mark[0])
		MHD_add_response_header(r, mark_header, o->mark);
	return answer(c, range ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, r, o->etag,
		      range ? part : NULL);
}

/* ---- changes ---- */

static void write_crc(uint32_t crc, char out[9])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (unsigned int i = 0; i < 6; i++)
		out[i] = digits[(uint64_t)crc << 4 >> (30 - 6 * i) & 63];
	strcpy(out + 6, "==");
}

/* Makes a new object, or a new version of one. The bytes are transferred. */
static void replace(size_t i, const char *key, struct upload *u, const char *mark)
{
	if (i == all.n || strcmp(all.v[i].key, key) != 0) {
		make_room();
		memmove(&all.v[i + 1], &all.v[i], (all.n++ - i) * sizeof(*all.v));
		all.v[i] = (struct object){.key = strdup(key)};
	}
	struct object *o = &all.v[i];
	o->bytes = u->bytes;
	o->n = u->n;
	snprintf(o->etag, sizeof(o->etag), "\"%032zx-1\"", ++all.puts);
	snprintf(o->mark, sizeof(o->mark), "%s", mark ? mark : "");
	*u = (struct upload){0};
}

static enum MHD_Result put_object(struct MHD_Connection *c, const char *key, struct upload *u)
{
	const char *match = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-Match");
	const char *none = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "If-None-Match");
	const char *sent = MHD_lookup_connection_value(c, MHD_HEADER_KIND, crc_header);
	char crc[9], etag[ETAG] = "";
	write_crc(sent ? checksum_crc32c(u->bytes, u->n, 0) : 0, crc);
	if (sent && strcmp(sent, crc) != 0)
		return refuse(c, MHD_HTTP_BAD_REQUEST, "BadDigest");
	pthread_rwlock_wrlock(&all.lock);
	const size_t i = lower_bound(key);
	const bool exists = i < all.n && strcmp(all.v[i].key, key) == 0;
	const bool fails =
		(none && exists) || (match && (!exists || strcmp(match, all.v[i].etag) != 0));
	if (!fails) {
		replace(i, key, u, MHD_lookup_connection_value(c, MHD_HEADER_KIND, mark_header));
		strcpy(etag, all.v[i].etag);
	}
	pthread_rwlock_unlock(&all.lock);
	if (fails)
		return refuse(c, MHD_HTTP_PRECONDITION_FAILED, "PreconditionFailed");
	struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	if (sent)
		MHD_add_response_header(r, crc_header, crc);
	return answer(c, MHD_HTTP_OK, r, etag, NULL);
}

static enum MHD_Result delete_object(struct MHD_Connection *c, const char *key)
{
	pthread_rwlock_wrlock(&all.lock);
	const size_t i = lower_bound(key);
	if (i < all.n && strcmp(all.v[i].key, key) == 0)
		memmove(&all.v[i], &all.v[i + 1], (--all.n - i) * sizeof(*all.v));
	pthread_rwlock_unlock(&all.lock);
	return answer(c, MHD_HTTP_NO_CONTENT,
		      MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT), NULL, NULL);
}

/* Takes a part of the body of a request. */
static enum MHD_Result take(struct upload *u, const char *bytes, size_t *n)
{
	if (u->room - u->n < *n) {
		u->room = 2 * u->room + *n;
		u->bytes = realloc(u->bytes, u->room);
	}
	if (!u->bytes)
		return MHD_NO;
	memcpy(u->bytes + u->n, bytes, *n);
	u->n += *n;
	*n = 0;
	return MHD_YES;
}

/* ---- listings ---- */

struct listing {
	struct MHD_Connection *c;
	const char *bucket, *prefix, *delimiter;
	bool encoded;
	FILE *out;
};

static const char *parameter(const struct listing *l, const char *name)
{
	const char *value = MHD_lookup_connection_value(l->c, MHD_GET_ARGUMENT_KIND, name);
	return value ? value : "";
}

static void put_key(const struct listing *l, const char *tag, const char *key, size_t n)
{
	fprintf(l->out, "<%s>", tag);
	for (size_t i = 0; i < n; i++) {
		const unsigned char b = (unsigned char)key[i];
		const bool plain = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') ||
				   (b >= '0' && b <= '9') || strchr("-_.~/", b);
		if (plain && b)
			fputc(b, l->out);
		else
			fprintf(l->out, l->encoded ? "%%%02X" : "&#%u;", b);
	}
	fprintf(l->out, "</%s>", tag);
}

/* Writes one entry. *next: the first object after it. Returns the end of its name in the key. */
static size_t put_entry(const struct listing *l, size_t i, size_t *next)
{
	const struct object *o = &all.v[i];
	const size_t skip = strlen(l->bucket) + 1;
	const char *key = o->key + skip;
	const char *end = *l->delimiter ? strstr(key + strlen(l->prefix), l->delimiter) : NULL;
	*next = i + 1;
	if (!end) {
		fputs("<Contents>", l->out);
		put_key(l, "Key", key, strlen(key));
		fprintf(l->out,
			"<LastModified>2023-11-14T22:13:20.000Z</LastModified><ETag>&quot;%.*s"
			"&quot;</ETag><Size>%zu</Size></Contents>",
			(int)strlen(o->etag) - 2, o->etag + 1, o->n);
		return strlen(o->key);
	}
	const size_t n = (size_t)(end + strlen(l->delimiter) - o->key);
	fputs("<CommonPrefixes>", l->out);
	put_key(l, "Prefix", key, n - skip);
	fputs("</CommonPrefixes>", l->out);
	char *last = strndup(o->key, n);
	last[n - 1]++; /* after all keys with this prefix */
	*next = lower_bound(last);
	free(last);
	return n;
}

static void put_page(const struct listing *l, size_t i, size_t most)
{
	const size_t first = strlen(l->bucket) + 1;
	char *from;
	if (asprintf(&from, "%s/%s", l->bucket, l->prefix) < 0)
		die("out of memory");
	size_t n = 0, end = 0, last = i;
	while (i < all.n && strncmp(all.v[i].key, from, strlen(from)) == 0 && n++ < most) {
		last = i;
		end = put_entry(l, i, &i);
	}
	const bool more = n > most;
	fprintf(l->out, "<IsTruncated>%s</IsTruncated>", more ? "true" : "false");
	if (more) {
		put_key(l, "NextContinuationToken", all.v[last].key + first, end - first);
		put_key(l, "NextMarker", all.v[last].key + first, end - first);
	}
	free(from);
}

/* The first object after the key or prefix from which the listing goes on. */
static size_t begin(const struct listing *l)
{
	static const char *const names[] = {"continuation-token", "start-after", "marker"};
	const char *after = "";
	char *key;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !*after; i++)
		after = parameter(l, names[i]);
	const bool goes_on = strcmp(after, l->prefix) >= 0 && *after;
	if (asprintf(&key, "%s/%s", l->bucket, goes_on ? after : l->prefix) < 0)
		die("out of memory");
	const size_t n = strlen(key);
	/* A token may be the common prefix that was shown last. */
	if (strlen(after) > strlen(l->prefix) && *l->delimiter && key[n - 1] == *l->delimiter)
		key[n - 1]++;
	size_t i = lower_bound(key);
	if (goes_on && i < all.n && strcmp(all.v[i].key, key) == 0)
		i++;
	free(key);
	return i;
}

static enum MHD_Result list(struct MHD_Connection *c, const char *bucket)
{
	char *text = NULL;
	size_t n;
	struct listing l = {.c = c, .bucket = bucket, .out = open_memstream(&text, &n)};
	l.prefix = parameter(&l, "prefix");
	l.delimiter = parameter(&l, "delimiter");
	l.encoded = strcmp(parameter(&l, "encoding-type"), "url") == 0;
	const size_t asked = strtoul(parameter(&l, "max-keys"), NULL, 10);
	fputs("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">", l.out);
	put_page(&l, begin(&l), asked > 0 && asked < PAGE ? asked : PAGE);
	fputs(l.encoded ? "<EncodingType>url</EncodingType>" : "", l.out);
	fputs("</ListBucketResult>", l.out);
	fclose(l.out);
	return answer_xml(c, MHD_HTTP_OK, text);
}

static enum MHD_Result read_only(struct MHD_Connection *c, const char *path, bool is_object)
{
	pthread_rwlock_rdlock(&all.lock);
	const enum MHD_Result rc = is_object ? get_object(c, path) : list(c, path);
	pthread_rwlock_unlock(&all.lock);
	return rc;
}

static enum MHD_Result serve(void *arg, struct MHD_Connection *c, const char *url,
			     const char *method, const char *version, const char *body, size_t *n,
			     void **state)
{
	struct upload *u = *state;
	(void)arg, (void)version;
	/* After an answer to the first call, the library would close the connection. */
	if (!u)
		return (*state = calloc(1, sizeof(*u))) ? MHD_YES : MHD_NO;
	if (*n)
		return take(u, body, n);
	char *path = strdup(url + 1), *rest = strchr(path, '/');
	if (rest && rest[1] == '\0')
		*rest = '\0';
	const bool is_object = rest && *rest;
	enum MHD_Result rc;
	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		rc = read_only(c, path, is_object);
	else if (is_object && strcmp(method, "PUT") == 0)
		rc = put_object(c, path, u);
	else if (is_object && strcmp(method, "DELETE") == 0)
		rc = delete_object(c, path);
	else
		rc = refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "MethodNotAllowed");
	free(path);
	return rc;
}

static void end_request(void *arg, struct MHD_Connection *c, void **state,
			enum MHD_RequestTerminationCode why)
{
	struct upload *u = *state;
	(void)arg, (void)c, (void)why;
	if (u)
		free(u->bytes);
	free(u);
}

/* Returns the text of a file. */
static char *read_file(const char *path)
{
	enum { MAX = 1 << 16 };
	char *text = calloc(1, MAX);
	FILE *f = fopen(path, "re");
	if (!text || !f || fread(text, 1, MAX - 1, f) == 0)
		die("cannot read the certificate or its key");
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	struct sockaddr_in local = {.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	sigset_t stop;
	int signal;
	if (argc != 2 && argc != 4)
		die("usage: memory_store FILE [CERTIFICATE KEY]");
	char *certificate = argc == 4 ? read_file(argv[2]) : NULL;
	char *key = argc == 4 ? read_file(argv[3]) : NULL;
	const struct MHD_OptionItem tls[] = {
		{argc == 4 ? MHD_OPTION_HTTPS_MEM_CERT : MHD_OPTION_END, 0, certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, key},
		{MHD_OPTION_END, 0, NULL},
	};
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	load(argv[1]);
	struct MHD_Daemon *daemon = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | (key ? MHD_USE_TLS : 0u), 0, NULL, NULL, serve,
		NULL, MHD_OPTION_SOCK_ADDR, &local, MHD_OPTION_THREAD_POOL_SIZE, THREADS,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, MHD_OPTION_NOTIFY_COMPLETED, end_request,
		NULL, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (!daemon)
		die("cannot listen");
	printf("port=%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	fflush(stdout);
	sigwait(&stop, &signal);
	MHD_stop_daemon(daemon);
	free(certificate);
	free(key);
	return 0;
}
