/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the schema of a path: tries one after the other. Pure. */
#include <schema/schema.h>

struct schema_classify schema_classify_again(const struct schema_ops *const *schemas,
					     const struct schema_document *known)
{
	struct schema_classify state = {0};
	while (schemas[state.schema] && schemas[state.schema] != known->schema)
		state.schema++;
	while (schemas[state.schema] && !schemas[state.schema]->classify && state.schema > 0)
		state.schema--;
	if (schemas[state.schema] && schemas[state.schema]->again)
		state.step = schemas[state.schema]->again(known);
	return state;
}

int schema_classify(const struct schema_ops *const *schemas, const char *path,
		    struct schema_classify *state, const struct schema_answer *answer,
		    struct schema_request *req, struct schema_document **out, struct err *err)
{
	*out = NULL;
	for (; schemas[state->schema]; state->schema++, state->step = 0, answer = NULL) {
		const struct schema_ops *schema = schemas[state->schema];
		if (!schema->classify || (schema->marks && state->without_marks))
			continue;
		int rc =
			schema->classify(path, state->listing, &state->step, answer, req, out, err);
		if (*out && !(*out)->schema)
			(*out)->schema = schema;
		if (rc || *out)
			return rc;
	}
	return 0;
}

bool schema_is_document(const struct schema_ops *const *schemas, const char *key)
{
	while (*schemas && !(*schemas)->is_document(key))
		schemas++;
	return *schemas;
}

bool schema_is_storage(const struct schema_ops *const *schemas, const char *key)
{
	while (*schemas && !(*schemas)->is_storage(key))
		schemas++;
	return *schemas;
}

const struct schema_ops *schema_of_new_domains(const struct schema_ops *const *schemas)
{
	while (*schemas && !(*schemas)->writer)
		schemas++;
	return *schemas;
}
