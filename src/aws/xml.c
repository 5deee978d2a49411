/* SPDX-License-Identifier: Apache-2.0 */
/* XML documents over expat, with one parser per call. Pure. */
#include <aws/xml.h>

#include <base/mem.h>

#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

enum {
	PART = 16 << 10,
	TOKEN_MAX = 64 << 10, /* of an incomplete tag, comment …; texts arrive in pieces */
};

struct walk {
	XML_Parser parser;
	const struct xml_handler *handler;
	struct xml_path at;
	char text[XML_TEXT_MAX + 1];
	size_t n;	 /* of text */
	int code;	 /* the error that stopped the parser, or 0 */
	const char *why; /* its message; NULL if the code is a handler's */
};

static void stop(struct walk *w, int code, const char *why)
{
	if (w->code)
		return;
	w->code = code;
	w->why = why;
	XML_StopParser(w->parser, XML_FALSE);
}

static void on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct walk *w = arg;
	const char *local = strrchr(name, ':');
	local = local ? local + 1 : name;
	if (w->code)
		return;
	if (w->at.depth == XML_DEPTH_MAX) {
		stop(w, -EBADMSG, "elements are nested too deeply");
		return;
	}
	if (strlen(local) >= XML_NAME_MAX) {
		stop(w, -EBADMSG, "a name is too long");
		return;
	}
	strcpy(w->at.name[++w->at.depth], local);
	w->n = 0;
	w->at.cut = false;
	int rc = w->handler->start ? w->handler->start(w->handler->arg, &w->at) : 0;
	if (rc)
		stop(w, rc, NULL);
}

static void on_end(void *arg, const XML_Char *name)
{
	struct walk *w = arg;
	if (w->code)
		return;
	w->text[w->n] = '\0';
	int rc = w->handler->end ? w->handler->end(w->handler->arg, &w->at, w->text, w->n) : 0;
	w->n = 0;
	w->at.cut = false;
	w->at.depth--;
	if (rc)
		stop(w, rc, NULL);
}

static void on_text(void *arg, const XML_Char *text, int len)
{
	struct walk *w = arg;
	const size_t room = XML_TEXT_MAX - w->n, n = min_u64((size_t)len, room);
	if (w->code)
		return;
	if ((size_t)len > room && !w->handler->cuts_texts) {
		stop(w, -EBADMSG, "a text is too long");
		return;
	}
	w->at.cut |= (size_t)len > room;
	memcpy(w->text + w->n, text, n);
	w->n += n;
}

static void on_doctype(void *arg, const XML_Char *name, const XML_Char *system,
		       const XML_Char *public, int internal)
{
	stop(arg, -EBADMSG, "a document type declaration is not allowed");
}

/* Parses in parts, to detect a token without an end, because expat keeps the whole token in memory.
 * For an element with a million attributes, it needs many times the size of the element. */
static enum XML_Status parse(struct walk *w, const char *bytes, size_t n)
{
	enum XML_Status status = XML_STATUS_OK;
	for (size_t at = 0; at < n && status == XML_STATUS_OK && !w->code;) {
		const size_t part = min_u64(n - at, PART);
		status = XML_Parse(w->parser, bytes + at, (int)part, at + part == n);
		at += part;
		const XML_Index token = XML_GetCurrentByteIndex(w->parser);
		if (status == XML_STATUS_OK && !w->code &&
		    at - (size_t)(token < 0 ? 0 : token) > TOKEN_MAX) {
			w->code = -EBADMSG;
			w->why = "a token is too long";
		}
	}
	return status;
}

static int run(struct walk *w, const void *bytes, size_t n, struct err *err)
{
	XML_SetUserData(w->parser, w);
	XML_SetElementHandler(w->parser, on_start, on_end);
	XML_SetCharacterDataHandler(w->parser, on_text);
	XML_SetStartDoctypeDeclHandler(w->parser, on_doctype);
	const enum XML_Status status = parse(w, bytes, n);
	if (w->code)
		return w->why ? err_set(err, w->code, "XML: %s", w->why) : w->code;
	if (status != XML_STATUS_OK)
		return err_set(err, -EBADMSG, "XML: %s at byte %lld",
			       XML_ErrorString(XML_GetErrorCode(w->parser)),
			       (long long)XML_GetCurrentByteIndex(w->parser));
	return 0;
}

int xml_make_valid(const char *from, size_t n, struct bytes *out)
{
	const int rc = bytes_append(out, from, n);
	for (size_t i = 0; !rc && i < n; i++) {
		uint8_t *c = &out->data[i];
		const bool is_space = *c == '\t' || *c == '\n' || *c == '\r';
		const bool is_reference = *c == '&' && i + 1 < n && from[i + 1] == '#';
		if ((*c < ' ' && !is_space) || *c > '~' || is_reference)
			*c = XML_REPLACEMENT;
	}
	return rc;
}

int xml_walk(const void *bytes, size_t n, const struct xml_handler *handler, struct err *err)
{
	if (n == 0)
		return err_set(err, -EBADMSG, "XML: the document is empty");
	auto_free struct walk *w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(err, -ENOMEM, "XML: out of memory");
	w->parser = XML_ParserCreate(NULL);
	if (!w->parser)
		return err_set(err, -ENOMEM, "XML: out of memory");
	w->handler = handler;
	int rc = run(w, bytes, n, err);
	XML_ParserFree(w->parser);
	return rc;
}
