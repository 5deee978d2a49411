/* SPDX-License-Identifier: Apache-2.0 */
/* Where the journal is if the user names no directory. See doc/JOURNAL.md. */
#ifndef CLI_JOURNAL_DIR_H
#define CLI_JOURNAL_DIR_H

#include <stdbool.h>

#include <hsmount/err.h>

/* Returns the directory of this user's journals, on the heap: /var/lib/hsmount for root, otherwise
 * $XDG_STATE_HOME/hsmount or ~/.local/state/hsmount. Returns NULL if out of memory. */
char *journal_dir_default(void);
/* Does the same for a user. `state_home` and `home` are the environment variables, or NULL; those
 * that are not absolute paths are ignored. `fallback` is the home directory if `home` cannot be
 * used. Pure. */
char *journal_dir_for(bool is_root, const char *state_home, const char *home, const char *fallback);

/* Makes the directories above a path that are missing, with mode 0700. The journal itself makes the
 * last one. */
int journal_dir_make_parents(const char *path, struct err *err);

#endif
