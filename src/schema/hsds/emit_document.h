/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the documents of new objects: the reverse of the parsers of parse.h. The documents are the
 * same in schema v1 and v2. The functions read a tree whose objects have ids and times. The
 * err of a struct schema_emit is never NULL. A writer that runs out of memory sets writer.bad, and
 * the document then fails with -ENOMEM.
 */
#ifndef HSDS_EMIT_DOCUMENT_H
#define HSDS_EMIT_DOCUMENT_H

#include <schema/schema.h>

#include "stand_in.h"
#include <json/writer.h>

enum {
	/* The first limit is for the values of one object, in bytes of memory; references count as
	 * their text. The second one is for one value in its stored form, in bytes. In base64 such
	 * values fit into a document that the reader accepts. */
	SCHEMA_EMIT_OBJECT_MAX = 96 << 20,
	SCHEMA_EMIT_VALUES_MAX = 160 << 20,
};

/* The strings without a value in a value that is written in base64, see stored_form.c. A zeroed
 * struct is empty. */
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

/* What the member "hsmount" beside a value has. A zeroed struct is empty. */
struct schema_beside {
	struct schema_unset unset;
	/* All bytes of a value whose lists have lost some: the sign and payload of a NaN. */
	struct bytes exact;
};
static inline void schema_beside_release(struct schema_beside *b)
{
	schema_unset_release(&b->unset);
	bytes_release(&b->exact);
}
#define auto_beside __attribute__((cleanup(schema_beside_release)))

struct schema_emit {
	const struct tree *tree;
	struct arena *arena; /* for stand-ins; freed after the document */
	struct writer w;
	/* Only for a document that is edited: the JSON text of `created` of the next link or
	 * attribute. If it is NULL, the time of the part is written. */
	const struct piece *created;
	bool exact;	/* write the exact type even if the stand-in is equal to it */
	uint64_t lists; /* bytes of the values that have been written as lists */
	struct err *err;
};

/* emit_ref.c. Returns the object of a reference, which is the number of the object + 1. Returns
 * NULL for the null reference, and for an object that is broken, has no id, or to which no link
 * leads. */
const struct object *schema_emit_target(const struct tree *t, uint64_t ref);
/* Writes the text of a reference: OBJECT_REF_TEXT bytes, padded with NULs. The text is empty if the
 * reference has no object. */
void schema_ref_text(const struct tree *t, uint64_t ref, char *text);

/* emit_type.c. Writes the member "type". `committed` is the number of the committed datatype, or
 * OBJECT_NONE. Sets *stand_in as schema_stand_in() does. Fails with -EOPNOTSUPP if the service has
 * no form for the type. */
int schema_emit_type(struct schema_emit *e, const struct dtype *t, uint32_t committed,
		     struct stand_in *stand_in);
/* emit_value.c. Writes the members "value", for a value in base64 "encoding", and "hsmount" of an
 * attribute. */
int schema_emit_value(struct schema_emit *e, const struct stand_in *c, const struct attribute *a);
/* Writes the members "fillValue" and "fillValue_encoding" of a dataset. *written is false if the
 * service has no form for the value, because it is a string that has never been set. Then nothing
 * is written. */
int schema_emit_fill(struct schema_emit *e, const struct stand_in *c, const struct dataset *ds,
		     bool *written, struct schema_beside *beside);
/* Writes the member "unset" of "hsmount", and the exact bytes of the value under a name, if there
 * are any. */
void schema_emit_beside(struct writer *w, const char *name, const struct schema_beside *b);
/* emit_dataset.c. Writes the members of a dataset from "type" to "layout", but not its
 * attributes. */
int schema_emit_dataset(struct schema_emit *e, const struct object *o);
/* Writes the member "shape". */
void schema_emit_space(struct schema_emit *e, const struct dspace *s);

/* emit_document.c. Write a member of "links" or of "attributes". */
int schema_emit_link(struct schema_emit *e, const struct link *l);
int schema_emit_attribute(struct schema_emit *e, const struct attribute *a);
/* Append a document to *out. On error, *out is as before. schema_emit_object() fails with
 * -EOPNOTSUPP if the object has something that schema_refusals() reports, and with -EINVAL if the
 * object has no id. Both fail with -EFBIG if the document would be too long. */
int schema_emit_object(const struct tree *t, uint32_t number, struct bytes *out, struct err *err);
int schema_emit_domain(const struct domain_info *info, struct bytes *out, struct err *err);
/* Writes the value of the member "acls" of a domain's document. */
void schema_emit_acls(struct writer *w, const struct domain_info *info);

/* acls.c, see schema_documents.edit_acls(). */
int schema_acls_edit(const void *text, size_t n, const struct domain_info *acls, struct bytes *out,
		     struct err *err);

/* import_record.c, see schema_writer.import_emit() and import_parse(). */
int schema_import_emit(const struct schema_import *i, struct bytes *out, struct err *err);
int schema_import_parse(const void *text, size_t n, struct arena *a, struct schema_import *out,
			struct err *err);

/* refusals.c, see schema_writer.refusals(). */
int schema_refusals(const struct tree *t, schema_refusal_fn fn, void *ctx);
/* Applies the same rules to a single attribute. *why becomes NULL, or the reason why a domain
 * cannot hold it. Fails with -ENOMEM. */
int schema_refused_attribute(struct arena *arena, const struct attribute *a, const char **why);
/* Return NULL, or the reason why a domain cannot hold a link, a shape or a comment.
 * schema_refused_object() returns the reason why the values or links of an object do not fit into a
 * document. */
const char *schema_refused_link(const struct link *l);
const char *schema_refused_shape(const struct dspace *s);
const char *schema_refused_object(const struct object *o);
const char *schema_refused_comment(const struct object *o);

/* stored_form.c. Appends the bytes in which the service stores the n elements of a value, and adds
 * the strings without a value to *unset. Fails with -EIO if a slot is damaged, and with -EFBIG if
 * the value would have more than SCHEMA_EMIT_VALUES_MAX bytes. */
int schema_stream_encode(const struct tree *tree, const struct dtype *t, uint64_t n,
			 const struct elems *e, struct bytes *out, struct schema_unset *unset,
			 struct err *err);

#endif
