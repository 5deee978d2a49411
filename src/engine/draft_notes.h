/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why files are plain objects and no domains, by name: user.hsds.kept. The table has DRAFT_NOTES
 * names at most, and forgets the oldest. Any thread.
 */
#ifndef ENGINE_DRAFT_NOTES_H
#define ENGINE_DRAFT_NOTES_H

enum { DRAFT_NOTES = 10000 };

struct draft_notes;
struct draft_notes *draft_notes_new(void); /* NULL: out of memory */
void draft_notes_free(struct draft_notes *n);
/* Replaces the note of the name. Without memory there is none. text NULL: only removes it. */
void draft_notes_set(struct draft_notes *n, const char *name, const char *text);
/* `to` gets the note of `from`, or none. */
void draft_notes_move(struct draft_notes *n, const char *from, const char *to);
/* Heap; NULL: there is none, or no memory. */
char *draft_notes_get(struct draft_notes *n, const char *name);

#endif
