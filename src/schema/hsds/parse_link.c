/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "links": {name: {class, id | h5path, h5domain, created}} -> struct link. A damaged link is left
 * out and reported. So is a link whose name HDF5 cannot hold, and a hard link to an object that the
 * domain does not have.
 *
 * The member "hsmount" {name, h5path, h5domain} of a link has the bytes, in base64, of text that is
 * not UTF-8. Pure.
 */
#include "parse.h"

#include <json/base64.h>

#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/utf8.h>

static int parse_hard(struct schema_ctx *ctx, const json_t *v, struct link *l, struct err *err)
{
	const json_t *id_text = json_object_get(v, "id");
	struct schema_id id;
	l->cls = LINK_HARD;
	if (!json_is_string(id_text) ||
	    !schema_id_parse(json_string_value(id_text), json_string_length(id_text), &id))
		return err_set(err, -EIO, "id: not the id of an object");
	if (id.form != ctx->form)
		return err_set(err, -EIO, "%s is an id of schema %s in a domain of schema %s",
			       json_string_value(id_text), schema_id_version(id.form),
			       schema_id_version(ctx->form));
	l->target = schema_number(ctx, &id);
	if (l->target == OBJECT_NONE)
		return err_set(err, -EIO, "object %s does not exist", json_string_value(id_text));
	return 0;
}

/* Replaces text by the bytes of a member of "hsmount", if the link has this member. */
static int take_bytes(struct schema_ctx *ctx, const json_t *v, const char *member, const char **out,
		      struct err *err)
{
	const json_t *coded = json_object_get(json_object_get(v, "hsmount"), member);
	auto_bytes struct bytes raw = {0};
	if (!coded)
		return 0;
	int rc = json_is_string(coded)
			 ? base64_decode(json_string_value(coded), json_string_length(coded), &raw)
			 : -EINVAL;
	if (rc == -ENOMEM)
		return err_errno(err, rc, "link");
	if (rc || raw.len > SCHEMA_NAME_MAX || (raw.len && memchr(raw.data, '\0', raw.len)))
		return err_set(err, -EIO, "hsmount: %s: not the base64 form of text", member);
	*out = arena_strndup(ctx->arena, raw.len ? (const char *)raw.data : "", raw.len);
	return *out ? 0 : err_errno(err, -ENOMEM, "link");
}

int schema_link_name(struct schema_ctx *ctx, const char *key, const json_t *v, const char **out,
		     struct err *err)
{
	int rc = schema_ctx_name(ctx, key, strlen(key), out, true, err);
	return rc ? rc : take_bytes(ctx, v, "name", out, err);
}

static int parse_path(struct schema_ctx *ctx, const json_t *v, const char *member, const char **out,
		      struct err *err)
{
	const json_t *text = json_object_get(v, member);
	if (!json_is_string(text))
		return err_set(err, -EIO, "%s: missing", member);
	int rc = schema_ctx_name(ctx, json_string_value(text), json_string_length(text), out, true,
				 err);
	if (!rc)
		rc = take_bytes(ctx, v, member, out, err);
	if (!rc && (*out)[0] == '\0')
		rc = err_set(err, -EIO, "it is empty");
	return rc ? err_wrap(err, rc, "%s", member) : 0;
}

/* The service writes "h5domain". The documentation and other writers use other names. */
static int parse_external(struct schema_ctx *ctx, const json_t *v, struct link *l, struct err *err)
{
	static const char *const words[] = {"h5domain", "domain", "file"};
	const char *word = words[0];
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (json_object_get(v, words[i])) {
			word = words[i];
			break;
		}
	}
	l->cls = LINK_EXTERNAL;
	int rc = parse_path(ctx, v, "h5path", &l->path, err);
	if (!rc)
		rc = parse_path(ctx, v, word, &l->domain, err);
	if (!rc && strlen(l->path) + strlen(l->domain) > SCHEMA_NAME_MAX)
		rc = err_set(err, -EIO, "path and domain are longer than %d bytes",
			     SCHEMA_NAME_MAX);
	return rc;
}

static int parse_link(struct schema_ctx *ctx, const json_t *v, struct link *l, struct err *err)
{
	if (l->name[0] == '\0')
		return err_set(err, -EIO, "the name is empty");
	if (strcmp(l->name, ".") == 0)
		return err_set(err, -EIO, "the name \".\" is reserved for the group itself");
	if (strchr(l->name, '/'))
		return err_set(err, -EIO, "the name contains \"/\"");
	const char *cls = json_text_word(v, "class");
	l->target = OBJECT_NONE;
	l->created_ns = schema_time_ns(json_object_get(v, "created"));
	if (!cls)
		return err_set(err, -EIO, "no class");
	if (strcmp(cls, "H5L_TYPE_HARD") == 0)
		return parse_hard(ctx, v, l, err);
	if (strcmp(cls, "H5L_TYPE_EXTERNAL") == 0)
		return parse_external(ctx, v, l, err);
	if (strcmp(cls, "H5L_TYPE_SOFT") != 0)
		return err_set(err, -EIO, "unknown class \"%.64s\"", cls);
	l->cls = LINK_SOFT;
	return parse_path(ctx, v, "h5path", &l->path, err);
}

/* Orders links by creation time, then by the bytes of the name. */
static int compare(const void *a, const void *b)
{
	const struct link *x = a;
	const struct link *y = b;
	if (x->created_ns != y->created_ns)
		return x->created_ns < y->created_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Sorts links only if necessary, because most documents have their links in order. */
static void sort(struct link *links, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		if (compare(&links[i - 1], &links[i]) > 0) {
			qsort(links, n, sizeof(*links), compare);
			return;
		}
	}
}

/* ---- names that occur twice ---- */

/* A name, without escapes. `at` is its position in the text of all names, which is in the order of
 * the document. */
struct name {
	uint32_t hash;
	uint32_t at;
	uint32_t link; /* index of the link; OBJECT_NONE if it is left out */
};

/* What has been read so far. The document does not say how many links there will be. */
struct links {
	struct bytes all;   /* struct link */
	struct bytes names; /* struct name, in the order of the document */
	struct bytes text;  /* the text of the names */
	uint32_t n;	    /* number of links */
};

static int add_name(struct links *links, const json_t *name, uint32_t link)
{
	const char *text = json_string_value(name);
	const size_t n = json_string_length(name);
	const struct name added = {
		.hash = checksum_lookup3(text, n, 0),
		.at = (uint32_t)links->text.len,
		.link = link,
	};
	const int rc = bytes_append(&links->names, &added, sizeof(added));
	return rc ? rc : bytes_append(&links->text, text, n + 1);
}

static int order_of_names(const struct name *x, const struct name *y, const char *text)
{
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return strcmp(text + x->at, text + y->at);
}

static int compare_names(const void *a, const void *b, void *text)
{
	const struct name *x = a, *y = b;
	const int order = order_of_names(x, y, text);
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* If several links have the same name, the last one counts, even if it is left out. The others lose
 * their names. */
static void drop_earlier(struct links *links)
{
	struct name *names = (struct name *)(void *)links->names.data;
	struct link *all = (struct link *)(void *)links->all.data;
	const size_t n = links->names.len / sizeof(*names);
	if (n < 2)
		return;
	qsort_r(names, n, sizeof(*names), compare_names, links->text.data);
	for (size_t i = 1; i < n; i++) {
		const struct name *earlier = &names[i - 1];
		if (earlier->link != OBJECT_NONE &&
		    order_of_names(earlier, &names[i], (const char *)links->text.data) == 0)
			all[earlier->link].name = NULL;
	}
}

/* ---- all links ---- */

/* Appends the link, or reports why it is left out. */
static int add_link(struct schema_ctx *ctx, const struct json_text_members *m, struct links *links,
		    struct err *err)
{
	const char *key = json_string_value(m->name);
	const uint32_t before = links->n;
	struct link l = {0};
	struct err why = ERR_INIT;
	int rc = schema_link_name(ctx, key, m->value, &l.name, &why);
	if (!rc) {
		l.utf8 = utf8_valid(l.name, strlen(l.name));
		rc = parse_link(ctx, m->value, &l, &why);
	}
	rc = schema_part(ctx, "link", l.name ? l.name : key, rc, &why, &links->n, err);
	if (rc)
		return rc;
	const bool added = links->n > before;
	if ((added && bytes_append(&links->all, &l, sizeof(l))) ||
	    add_name(links, m->name, added ? before : OBJECT_NONE))
		return err_errno(err, -ENOMEM, "links");
	return 0;
}

static int read_links(struct schema_ctx *ctx, const struct json_text *json, struct links *links,
		      struct err *err)
{
	struct json_text_members m;
	int rc;
	json_text_members_begin(&m, json);
	while ((rc = json_text_next(&m, err)) > 0) {
		rc = add_link(ctx, &m, links, err);
		if (rc)
			break;
	}
	json_text_members_end(&m);
	return rc;
}

/* Copies the links that still have names to the object, and sorts them. */
static int keep(struct schema_ctx *ctx, const struct links *links, struct object *o,
		struct err *err)
{
	const struct link *all = (const struct link *)(const void *)links->all.data;
	if (links->n == 0)
		return 0;
	o->group.links = arena_array(ctx->arena, links->n, sizeof(*o->group.links));
	if (!o->group.links)
		return err_errno(err, -ENOMEM, "links");
	for (uint32_t i = 0; i < links->n; i++)
		if (all[i].name)
			o->group.links[o->group.nlinks++] = all[i];
	sort(o->group.links, o->group.nlinks);
	return 0;
}

int schema_links(struct schema_ctx *ctx, const struct json_text *json, struct object *o,
		 struct err *err)
{
	const json_t *other = json_object_get(json->doc, "links");
	struct links links = {0};
	o->group.links_ordered = true;
	if (!json->apart)
		return !other || json_is_null(other) ? 0
						     : err_set(err, -EIO, "links: not an object");
	int rc = read_links(ctx, json, &links, err);
	if (!rc) {
		drop_earlier(&links);
		rc = keep(ctx, &links, o, err);
	}
	bytes_release(&links.all);
	bytes_release(&links.names);
	bytes_release(&links.text);
	return rc;
}
