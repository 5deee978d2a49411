/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents of new objects: the reverse of the parsers of parse.h, the same in schema v1 and v2.
 * They read a tree whose objects have ids and times. err is never NULL here.
 */
#ifndef HSDS_EMIT_DOCUMENT_H
#define HSDS_EMIT_DOCUMENT_H

#include <schema/schema.h>

#include "stand_in.h"
#include <json/writer.h>

enum {
	/* Most bytes in memory of the values of one object, and most bytes of one value in its
	 * stored form: in base64 they fit in a document that the reader accepts. */
	SCHEMA_EMIT_OBJECT_MAX = 96 << 20,
	SCHEMA_EMIT_VALUES_MAX = 160 << 20,
};

/* Strings without a value in a value in base64: see stored_form.c. Zeroed, it is empty. */
struct schema_unset {
	size_t n;
	struct {
		uint64_t first, count;
	} * ranges;
};
static inline void schema_unset_release(struct schema_unset *u)
{
	free(u->ranges);
}
#define auto_unset __attribute__((cleanup(schema_unset_release)))

struct schema_emit {
	const struct tree *tree;
	struct arena *arena; /* for stand-ins; released after the document */
	struct writer w;
	/* Members of a document that is edited: the JSON text of `created` of the next link or
	 * attribute. NULL: its time. */
	const struct piece *created;
	bool exact;	/* write the exact type also if it is that of the service */
	uint64_t lists; /* bytes of the values that have been written as lists */
	struct err *err;
};

/* emit_ref.c: the object that a reference names: number + 1; NULL: the domain has no such object.
 */
const struct object *schema_emit_target(const struct tree *t, uint64_t ref);
/* Writes the text of a reference: OBJECT_REF_TEXT bytes, padded with NULs. */
void schema_ref_text(const struct tree *t, uint64_t ref, char *text);

/* emit_type.c: the member "type". committed: OBJECT_NONE, or the number of the committed type.
 * *stand-in: see schema_stand_in(). -EOPNOTSUPP if the service has no form for it. */
int schema_emit_type(struct schema_emit *e, const struct dtype *t, uint32_t committed,
		     struct stand_in *stand_in);
/* emit_value.c: "value" and, in base64, "encoding" of an attribute. */
int schema_emit_value(struct schema_emit *e, const struct stand_in *c, const struct attribute *a);
/* "fillValue" and "fillValue_encoding" of a dataset. *written: false if the service has no form for
 * it: the value is a string that has never been set. */
int schema_emit_fill(struct schema_emit *e, const struct stand_in *c, const struct dataset *ds,
		     bool *written, struct schema_unset *unset);
/* The member "unset" of "hsmount". */
void schema_emit_unset(struct writer *w, const struct schema_unset *unset);
/* emit_dataset.c: the members of a dataset from "type" to "layout", without attributes. */
int schema_emit_dataset(struct schema_emit *e, const struct object *o);
/* The members of "shape". */
void schema_emit_space(struct schema_emit *e, const struct dspace *s);

/* emit_document.c: a member of "links" or "attributes". */
int schema_emit_link(struct schema_emit *e, const struct link *l);
int schema_emit_attribute(struct schema_emit *e, const struct attribute *a);
/* Appends a document. -EOPNOTSUPP if the object holds something that refusals() reports. */
int schema_emit_object(const struct tree *t, uint32_t number, struct bytes *out, struct err *err);
int schema_emit_domain(const struct domain_info *info, struct bytes *out, struct err *err);
/* The value of the member "acls" of a domain's document. */
void schema_emit_acls(struct writer *w, const struct domain_info *info);

/* acls.c: see schema_ops.edit_acls(). */
int schema_acls_edit(const void *text, size_t n, const struct domain_info *acls, struct bytes *out,
		     struct err *err);

/* import_record.c */
int schema_import_emit(const struct schema_import *i, struct bytes *out, struct err *err);
int schema_import_parse(const void *text, size_t n, struct arena *a, struct schema_import *out,
			struct err *err);

/* refusals.c */
int schema_refusals(const struct tree *t, schema_refusal_fn fn, void *ctx);
/* The same table for a single part of an object. *why: NULL, or what cannot be held. -ENOMEM. */
int schema_refused_attribute(struct arena *arena, const struct attribute *a, const char **why);
/* NULL, or why a link, a shape or a comment cannot be held; why the values or links of an object do
 * not fit into a document. */
const char *schema_refused_link(const struct link *l);
const char *schema_refused_shape(const struct dspace *s);
const char *schema_refused_object(const struct object *o);
const char *schema_refused_comment(const struct object *o);

/* stored_form.c: appends the bytes in which the service stores the n elements of a value, and adds
 * the strings without a value to *unset. -EIO: a slot is damaged; -EFBIG. */
int schema_stream_encode(const struct tree *tree, const struct dtype *t, uint64_t n,
			 const struct elems *e, struct bytes *out, struct schema_unset *unset,
			 struct err *err);

#endif
