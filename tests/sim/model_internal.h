/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of model.h share: model.c looks at the end of a history, model_reads.c judges what
 * happened before. */
#ifndef SIM_MODEL_INTERNAL_H
#define SIM_MODEL_INTERNAL_H

#include "model.h"

struct found {
	struct history *h;
	const struct model_gaps *gaps;
	struct model_result *result;
	struct engine *engine;
	bool listed[NAMES_MAX], has[NAMES_MAX];
	bool has_plain; /* a name leads to a file that is not whole */
	struct content content[NAMES_MAX];
};

/* Whether somebody has made a file with this uid. */
bool model_is_known(const struct history *h, uint64_t uid);
/* Whether a change of this file is stored, or may be. */
bool model_is_change_of(const struct history *h, const struct op *op, uint64_t uid);
/* Whether an order of the changes leads to the end of a dataset that grows. */
bool model_explains_growth(const struct history *h, const struct content *end,
			   enum content_part part);
/* Whether the file of a change had no name at a moment of it. */
bool model_was_moved(const struct history *h, const struct op *op);

/* Whether the bucket may have a file twice, because its import was started again after another
 * program had renamed the complete domain (DETAILS.md, "Imports"). */
bool model_is_imported_twice(const struct history *h, uint64_t uid);
/* Whether a file may get the name with which it was made at any moment, because a request for that
 * arrives late, or is sent twice ("Committing again" in doc/DETAILS.md). */
bool model_was_made_late(const struct history *h, uint64_t uid);

/* Whether a program wrote to the draft of a new file, which another program of its mount had made,
 * and its commit has failed, was killed, or was refused and then asked for. Who repeats it replaces
 * what others have changed in place since: "Files that are written on" in doc/DETAILS.md. So does a
 * late request of an import or of a killed daemon: "Committing again". */
bool model_may_be_replaced(const struct history *h, uint64_t uid);
/* Whether a rename gave this name while another program stored the file again under the old one:
 * then this one has an earlier state (DETAILS.md, "Renames"). */
bool model_was_given_meanwhile(const struct history *h, unsigned int name);

void model_check_reads(struct found *f);
void model_check_lists(struct found *f);
void model_check_checks(struct found *f);
void model_check_refused(struct found *f);
void model_check_twice(struct found *f);
void model_check_dirs(struct found *f);

#endif
