/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named histories: interleavings that are known to be dangerous. The seed decides who is faster,
 * and in some of them which request fails. Names: see history_names.
 */
#include "history.h"
#include "process.h"

#include <errno.h>

enum { F1_A, F1_B, F2_A, F2_C, F1_D, F3_E };
enum { SLOW_STEPS = 60, LATE_SCRIPTS = 8, LATE_ONE_IN = 24 };

struct script {
	const char *name;
	unsigned int engines, present;
	bool has_order; /* often each operation begins when the one before has ended */
	struct op ops[OPS_MAX];
};

/* clang-format off */
#define OP(kind_, e, n)	    .kind = kind_, .engine = e, .name = n
#define CREATE(e, n)	    {OP(OP_CREATE, e, n)}
#define REMOVE(e, n)	    {OP(OP_REMOVE, e, n)}
#define MOVE(e, n, m)	    {OP(OP_RENAME, e, n), .to = m}
#define MOVE_OPEN(e, n, m)  {OP(OP_RENAME, e, n), .to = m, .inside = true}
#define CHANGE(e, n, what)  {OP(OP_CHANGE, e, n), .change = what}
/* The seed decides how long it has the file open. */
#define SLOW(e, n, what)    {OP(OP_CHANGE, e, n), .change = what, .waits = SLOW_STEPS}
/* By the k-th actor of the engine. With an even s, it reads most of the data at the end. */
#define READ(e, k, n, s)    {OP(OP_READ, e, n), .actor = k, .waits = s}
#define LOOK_AND_READ(e, n) {OP(OP_READ, e, n), .looks = true}
#define LIST(e, k, n)	    {OP(OP_LIST, e, n), .actor = k}
/* Operations of the k-th actor. */
#define CREATE_BY(e, k, n)  {OP(OP_CREATE, e, n), .actor = k}
#define REMOVE_BY(e, k, n)  {OP(OP_REMOVE, e, n), .actor = k}
#define MOVE_BY(e, k, n, m) {OP(OP_RENAME, e, n), .actor = k, .to = m}
/* The seed decides which calls of the disk fail, and how many. */
#define HOLD(e, k)	    {OP(OP_HOLD, e, 0), .actor = k, .disk = {.many = 8}}
#define LINKS(e, k)	    {OP(OP_LINKS, e, 0), .actor = k}
#define STORES(e, k)	    {OP(OP_STORES, e, 0), .actor = k}
/* The seed decides which request has the fault. */
#define STORES_FAULT(e, k, f) {OP(OP_STORES, e, 0), .actor = k, .fault = f, .all = true}
#define BRIEF(e, k)	    {OP(OP_SHARED, e, 0), .actor = k, .plays = PLAY_BRIEF}
#define HOLD_SHARED(e, k)   {OP(OP_SHARED, e, 0), .actor = k, .plays = PLAY_HOLD}
#define TURN(e, k)	    {OP(OP_SHARED, e, 0), .actor = k, .plays = PLAY_TURN}
#define REMOVE_SHARED(e, k) {OP(OP_SHARED, e, 0), .actor = k, .plays = PLAY_REMOVE}
/* All PUT and DELETE of the engine fail meanwhile. */
#define HOLD_REFUSED(e, k) \
	{OP(OP_SHARED, e, 0), .actor = k, .plays = PLAY_HOLD, .fault = FAULT_REFUSED, .at = 1, \
	 .many = 200}
/* Engine 0 by its k-th actor, when the i-th operation, from 0, has ended. */
#define KILL_WHEN(k, i)	    {OP(OP_KILL, 0, 0), .actor = k, .follows = i + 1}
#define FOLDERS(e, k)	    {OP(OP_FOLDERS, e, 0), .actor = k}
/* The seed decides which PUT or DELETE has the fault. */
#define FOLDERS_FAULT(e, k, f) {OP(OP_FOLDERS, e, 0), .actor = k, .fault = f}
#define ACLS(e, k)	    {OP(OP_ACLS, e, 0), .actor = k}
#define MIXED(e, k)	    {OP(OP_MIXED, e, 0), .actor = k}
/* The seed decides which PUT or DELETE has the fault. */
#define MIXED_FAULT(e, k, f) {OP(OP_MIXED, e, 0), .actor = k, .fault = f}
#define MIXED_BRIEF(e)	    {OP(OP_MIXED, e, 0), .plays = PLAY_BRIEF}
#define PLAINS(e, k)	    {OP(OP_PLAIN, e, 0), .actor = k}
/* The seed decides which PUT or DELETE has the fault. */
#define PLAINS_FAULT(e, k, f) {OP(OP_PLAIN, e, 0), .actor = k, .fault = f}
#define SHARED(e, k)	    {OP(OP_SHARED, e, 0), .actor = k}
#define SHARED_FAULT(e, k, f, i) {OP(OP_SHARED, e, 0), .actor = k, .fault = f, .at = i}
#define SHARED_DISK(e, k)   {OP(OP_SHARED, e, 0), .actor = k, .disk = {.many = 1}}
/* By the k-th actor of engine 0, which has it open until the i-th operation, from 0, has ended. */
#define WRITE_ON(k, n, what, i) \
	{OP(OP_CHANGE, 0, n), .actor = k, .change = what, .waits = SLOW_STEPS, .outlasts = i + 1}
/* When the i-th operation, from 0, has ended. */
#define CHANGE_AFTER(e, n, what, i) {OP(OP_CHANGE, e, n), .change = what, .follows = i + 1}
/* By the k-th actor of engine 0, which reads its file s seconds after the open. */
#define SLEEP_OPEN(k, n, what, s) \
	{OP(OP_CHANGE, 0, n), .actor = k, .change = what, .sleeps = s}
#define MKDIR(e, n)	    {OP(OP_MKDIR, e, n)}
#define WAIT(e, s)	    {OP(OP_WAIT, e, 0), .waits = s}
/* By the k-th actor of engine 0, whose child has it open until the i-th operation has ended. */
#define STAY_OPEN(k, n, what, i) \
	{OP(OP_CHANGE, 0, n), .actor = k, .change = what, .stays = i + 1}
/* By the k-th actor of engine 0, which opens the file for writing and closes it at once. */
#define OPEN_BY(k, n) \
	{OP(OP_CUT, 0, n), .actor = k, .opens = true, .looks = true}
/* By the k-th actor of engine 0. */
#define WAIT_BY(k, s)	    {OP(OP_WAIT, 0, 0), .actor = k, .waits = s}
#define RESTART(e)	    {OP(OP_RESTART, e, 0)}
#define DROP(e)		    {OP(OP_DROP, e, 0)}
#define RECOVER(e)	    {OP(OP_RECOVER, e, 0)}
/* By the k-th actor of engine 0. */
#define IMPORT(k, n)	    {OP(OP_IMPORT, PROCESS_ENGINE, n), .actor = k}
#define CHECK(k)	    {OP(OP_CHECK, PROCESS_ENGINE, 0), .actor = k}
#define IMPORT_OVER(k, n)   {OP(OP_IMPORT, PROCESS_ENGINE, n), .actor = k, .replaces = true}
/* Its i-th PUT or DELETE has a fault. The seed decides whether it is continued or removed. */
#define IMPORT_FAULT(k, n, over, f, i) \
	{OP(OP_IMPORT, PROCESS_ENGINE, n), .actor = k, .replaces = over, .fault = f, .at = i}
#define CUT(e, n, o)	    {OP(OP_CUT, e, n), .opens = o}
#define KILL(e)		    {OP(OP_KILL, e, 0)}
/* A name that a plain object has at first. */
#define PLAIN(n)	    (1u << (HISTORY_PLAIN + (n)))
#define KILL_BY(e, k)	    {OP(OP_KILL, e, 0), .actor = k}
#define END		    {OP(OP_KINDS, 0, 0)}
/* The machine of engine 0 loses its power at one of its first n changes: see struct history. */
#define SWEEP(n)	    {OP(OP_KINDS, 0, 0), .at = n}
/* The request for the document of a name has a fault. */
#define MOVE_FAULT(e, n, m, f, document) \
	{OP(OP_RENAME, e, n), .to = m, .fault = f, .at = 1, .on = document "/.domain.json"}
/* The first PUT or DELETE of a key that ends so has a fault. */
#define CREATE_FAULT(e, n, f, key) \
	{OP(OP_CREATE, e, n), .fault = f, .at = 1, .on = key, .keeps_power = true}
/* The seed decides which PUT and DELETE fail. Its program writes the file again if so. */
#define CREATE_AGAIN(e, n)  {OP(OP_CREATE, e, n), .fault = FAULT_REFUSED, .rewrites = 4}
/* One of the next calls of the disk fails. */
#define CREATE_FULL(e, n)   {OP(OP_CREATE, e, n), .disk = {.at = 20, .many = 8}}
/* The second PUT or DELETE of a change has a fault. */
#define CHANGE_FAULT(e, n, what, f) {OP(OP_CHANGE, e, n), .change = what, .fault = f, .at = 2}

/* The seed decides which calls of the disk fail. */
#define CHANGE_DISK(e, n, what) {OP(OP_CHANGE, e, n), .change = what, .disk = {.many = 8}}

static const struct script scripts[] = {
	{"a rename there and back", 2, 1, false, {
		MOVE(0, F1_A, F2_C), MOVE(1, F2_C, F1_A), MOVE(0, F1_A, F2_C),
		MOVE(1, F2_C, F1_A), END}},
	{"a slow rename while the storage is deleted", 2, 1, false, {
		{OP(OP_RENAME, 0, F1_A), .to = F2_C, .fault = FAULT_SLOW, .at = 1},
		REMOVE(1, F1_A), WAIT(1, 80), WAIT(1, 80), END}},
	{"a slow rename while a machine with a wrong clock deletes the storage", 2, 1, false, {
		{OP(OP_CLOCK, 1, 0)}, {OP(OP_RENAME, 0, F1_A), .to = F2_C, .fault = FAULT_SLOW,
		.at = 1, .on = "f2/c.h5/.domain.json"},
		REMOVE(1, F1_A), WAIT(1, 80), WAIT(1, 80), END}},
	{"a slow PUT over a file, and the storage is renamed and removed", 2, 3, true, {
		{OP(OP_RENAME, 0, F1_A), .to = F1_B, .fault = FAULT_SLOW, .at = 1,
		 .on = "f1/b.h5/.domain.json"},
		MOVE(1, F1_A, F2_C), REMOVE(1, F2_C), WAIT(1, 80), WAIT(1, 80), END}},
	{"rm beside a rename", 2, 1, false, {
		MOVE(0, F1_A, F2_C), REMOVE(1, F1_A), REMOVE(1, F2_C), END}},
	{"two renames of one file", 3, 1, false, {
		MOVE(0, F1_A, F2_C), MOVE(1, F1_A, F1_B), MOVE(2, F1_A, F2_A), END}},
	{"a rename is finished while an earlier one removes the old name", 3, 1, false, {
		MOVE_FAULT(1, F1_A, F1_B, FAULT_SLOW, "f1/b.h5"), WAIT(0, 2),
		MOVE_FAULT(0, F1_A, F2_C, FAULT_SLOW, "f1/a.h5"), WAIT(2, 4),
		MOVE_FAULT(2, F1_A, F2_A, FAULT_SLOW, "f1/a.h5"), END}},
	{"an old claim is met by a repeated mv", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F2_C, FAULT_REFUSED, "f1/a.h5"), MOVE(1, F1_A, F2_C),
		MOVE(0, F1_A, F2_C), WAIT(1, 40), END}},
	{"a PUT arrives after its time-out", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F2_C, FAULT_LATE, "f2/c.h5"), MOVE(0, F1_A, F1_B),
		REMOVE(1, F1_B), WAIT(1, 40), END}},
	{"a PUT arrives after the file was removed", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F2_C, FAULT_LATE, "f2/c.h5"), REMOVE(1, F1_A), WAIT(1, 40),
		WAIT(0, 40), END}},
	{"a DELETE arrives after its time-out", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F2_C, FAULT_LATE, "f1/a.h5"), MOVE(1, F2_C, F1_A),
		MOVE(0, F1_A, F1_B), WAIT(1, 40), END}},
	{"mkdir and cp beside a rename", 3, 1, false, {
		MOVE(0, F1_A, F2_C), MKDIR(1, F1_A), CREATE(1, F2_C), CREATE(2, F1_A),
		MKDIR(2, F1_B), END}},
	{"a killed rename, then mv and rm of the old name", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F1_B, FAULT_KILL, "f1/a.h5"), MOVE(1, F1_B, F2_C),
		REMOVE(1, F1_A), WAIT(1, 40), RESTART(1), END}},
	{"a refused rename, then mv and rm of the old name", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F1_B, FAULT_REFUSED, "f1/a.h5"), MOVE(1, F1_B, F2_C),
		REMOVE(1, F1_A), WAIT(1, 40), RESTART(1), END}},
	{"a killed rename across folders, then mv and rm", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F2_C, FAULT_KILL, "f1/a.h5"), MOVE(1, F2_C, F3_E),
		REMOVE(1, F1_A), WAIT(1, 40), RESTART(1), END}},
	{"a refused rename across folders, then the old name moves", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F2_C, FAULT_REFUSED, "f1/a.h5"), MOVE(1, F1_A, F3_E),
		REMOVE(1, F2_C), WAIT(1, 40), RESTART(1), END}},
	{"a refused rename, the old name moves, the new one is replaced", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F1_B, FAULT_REFUSED, "f1/a.h5"), MOVE(1, F1_A, F2_A),
		CREATE(1, F1_B), WAIT(1, 40), RESTART(1), END}},
	{"two mounts rename over one name", 2, 7, false, {
		MOVE(0, F1_A, F2_A), MOVE(1, F1_B, F2_A), END}},
	{"two mounts create one file", 3, 0, false, {
		CREATE(0, F1_A), CREATE(1, F1_A), CREATE(2, F1_A), REMOVE(0, F1_A), END}},
	{"two mounts grow one dataset", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_GROW), SLOW(1, F1_A, CHANGE_GROW),
		CHANGE(0, F1_A, CHANGE_GROW), CHANGE(1, F1_A, CHANGE_GROW_EMPTY), END}},
	{"two mounts grow one dataset by equal bytes", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_GROW_EQUAL), SLOW(1, F1_A, CHANGE_GROW_EQUAL),
		CHANGE(0, F1_A, CHANGE_GROW_EQUAL), CHANGE(1, F1_A, CHANGE_GROW_EQUAL), END}},
	/* The DELETE and the PUT of the same chunk are slow. */
	{"a grower withdraws its chunk while another mount puts an equal one", 2, 1, false, {
		CHANGE_FAULT(0, F1_A, CHANGE_GROW_EQUAL, FAULT_REFUSED),
		{OP(OP_CHANGE, 1, F1_A), .change = CHANGE_GROW_EQUAL, .fault = FAULT_SLOW, .at = 3,
		 .follows = 1},
		WAIT(0, 2),
		{OP(OP_CHANGE, 0, F1_A), .change = CHANGE_TAG, .fault = FAULT_SLOW, .at = 1}, END}},
	{"two mounts increment one element", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_CELL), SLOW(1, F1_A, CHANGE_CELL),
		CHANGE(0, F1_A, CHANGE_CELL), CHANGE(1, F1_A, CHANGE_CELL), END}},
	{"two mounts increment one attribute", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_COUNT), SLOW(1, F1_A, CHANGE_COUNT),
		CHANGE(0, F1_A, CHANGE_COUNT), CHANGE(1, F1_A, CHANGE_COUNT), END}},
	{"a file is removed while another mount changes a chunk", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_X1), REMOVE(1, F1_A), WAIT(1, 40), END}},
	{"a file is replaced while another mount changes an attribute", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_TAG), CREATE(1, F1_A), END}},
	{"a file is renamed over while another mount changes a chunk", 2, 3, false, {
		SLOW(0, F1_A, CHANGE_X0), MOVE(1, F1_B, F1_A), END}},
	{"a file is renamed while another mount changes it", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_X1), MOVE(1, F1_A, F2_C), CHANGE(1, F2_C, CHANGE_X0), END}},
	{"an open file is renamed by its own mount", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_X1), MOVE_OPEN(0, F1_A, F2_C), CHANGE(1, F1_A, CHANGE_TAG),
		CHANGE(1, F2_C, CHANGE_TAG), END}},
	{"a dataset is removed while another mount changes it", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_SPARE), CHANGE(1, F1_A, CHANGE_UNLINK), WAIT(1, 40), END}},
	{"two mounts change texts of one chunk", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_WORD), SLOW(1, F1_A, CHANGE_WORD),
		CHANGE(0, F1_A, CHANGE_WORD), CHANGE(1, F1_A, CHANGE_WORD), END}},
	{"two mounts add, move and replace objects", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_EXTRA), SLOW(1, F1_A, CHANGE_EXTRA),
		CHANGE(0, F1_A, CHANGE_MOVE), CHANGE(1, F1_A, CHANGE_UNEXTRA),
		CHANGE(0, F1_A, CHANGE_REPLACE), CHANGE(1, F1_A, CHANGE_MOVE), END}},
	{"a move between groups fails, then the object moves back", 2, 1, true, {
		CHANGE(0, F1_A, CHANGE_EXTRA), CHANGE_FAULT(0, F1_A, CHANGE_MOVE, FAULT_KILL),
		CHANGE(1, F1_A, CHANGE_MOVE), CHANGE(1, F1_A, CHANGE_REPLACE), END}},
	{"two mounts swap two datasets", 2, 1, true, {
		CHANGE(0, F1_A, CHANGE_EXTRA), CHANGE(0, F1_A, CHANGE_EXTRA),
		SLOW(0, F1_A, CHANGE_SWAP), SLOW(1, F1_A, CHANGE_SWAP),
		CHANGE(1, F1_A, CHANGE_SWAP),
		CHANGE_FAULT(0, F1_A, CHANGE_SWAP, FAULT_KILL_AFTER), CHANGE(1, F1_A, CHANGE_MOVE),
		END}},
	{"a change that no domain can hold", 2, 1, true, {
		CHANGE(0, F1_A, CHANGE_ALIEN), CHANGE(1, F1_A, CHANGE_TAG), RESTART(0),
		MOVE(1, F1_A, F2_C), CHANGE(0, F2_C, CHANGE_X0), KILL(0), END}},
	{"a change fails half-way, and its mount changes the file again", 2, 1, true, {
		CHANGE_FAULT(0, F1_A, CHANGE_TWO, FAULT_REFUSED), CHANGE(0, F1_A, CHANGE_TAG),
		CHANGE_FAULT(0, F1_A, CHANGE_TWO, FAULT_REFUSED), CHANGE(0, F1_A, CHANGE_X0),
		CHANGE(1, F1_A, CHANGE_COUNT), END}},
	{"a move between groups is killed and dropped", 2, 1, true, {
		CHANGE(0, F1_A, CHANGE_EXTRA), CHANGE_FAULT(0, F1_A, CHANGE_MOVE, FAULT_KILL),
		DROP(0), CHANGE(1, F1_A, CHANGE_TAG), END}},
	{"programs of one mount read while another one changes the file", 2, 3, false, {
		READ(0, 0, F1_A, 5), READ(0, 1, F1_A, 2), READ(0, 2, F1_A, 1),
		CHANGE(1, F1_A, CHANGE_COUNT), MOVE(1, F1_B, F1_A), READ(0, 0, F1_A, 2),
		READ(0, 1, F1_A, 3), READ(0, 2, F1_A, 2), END}},
	{"a mount removes a file that its programs read", 1, 3, false, {
		READ(0, 0, F1_A, 10), READ(0, 1, F1_A, 12), READ(0, 2, F1_A, 1),
		READ(0, 3, F1_A, 0), READ(0, 4, F1_A, 0), {OP(OP_REMOVE, 0, F1_A), .actor = 5},
		{OP(OP_RENAME, 0, F1_B), .actor = 5, .to = F1_A}, READ(0, 0, F1_A, 2),
		READ(0, 2, F1_A, 0), READ(0, 3, F1_A, 0), READ(0, 4, F1_A, 2), END}},
	{"programs list a folder while another mount renames its files", 2, 3, false, {
		LIST(0, 0, F1_A), MOVE(1, F1_A, F1_D), LIST(0, 1, F1_A), MOVE(1, F1_B, F2_C),
		LIST(0, 0, F1_A), CREATE(1, F1_A), LIST(0, 1, F2_C), REMOVE(1, F1_D),
		LIST(0, 0, F1_A), LIST(0, 1, F1_A), END}},
	{"a mount makes a file while another one makes a known one again", 2, 5, true, {
		LIST(1, 0, F1_A), WAIT(1, 2), REMOVE(0, F1_A), CREATE(1, F1_B), CREATE(0, F1_A),
		LOOK_AND_READ(1, F1_A), LIST(1, 0, F2_A), WAIT(1, 2), REMOVE(0, F2_A),
		CREATE(1, F2_C), CREATE(0, F2_A), LOOK_AND_READ(1, F2_A), END}},
	{"a folder is listed by the mount that changes its files", 1, 3, false, {
		LIST(0, 0, F1_A), LIST(0, 0, F1_A), LIST(0, 0, F1_A), LIST(0, 0, F1_A),
		{OP(OP_RENAME, 0, F1_A), .actor = 1, .to = F1_D},
		{OP(OP_CREATE, 0, F1_A), .actor = 1}, {OP(OP_REMOVE, 0, F1_B), .actor = 1},
		{OP(OP_RENAME, 0, F1_D), .actor = 1, .to = F1_A}, END}},
	{"a mount ends while it deletes the storage of a file", 1, 7, false, {
		REMOVE(0, F1_A), WAIT(0, 30), RESTART(0), REMOVE(0, F1_B), RESTART(0),
		REMOVE(0, F2_A), WAIT(0, 30), RESTART(0), END}},
	{"a grower fails before the shape, then another mount grows", 2, 1, true, {
		CHANGE_FAULT(0, F1_A, CHANGE_GROW, FAULT_REFUSED),
		CHANGE(1, F1_A, CHANGE_GROW_EMPTY), CHANGE(1, F1_A, CHANGE_GROW), END}},
	{"a grower fails and is dropped, then another mount grows", 2, 1, true, {
		CHANGE_FAULT(0, F1_A, CHANGE_GROW, FAULT_KILL), DROP(0), WAIT(1, 2),
		CHANGE(1, F1_A, CHANGE_GROW_EMPTY), CHANGE(0, F1_A, CHANGE_GROW_EMPTY), END}},
	{"a grower is killed before the shape, then another mount grows", 2, 1, true, {
		CHANGE_FAULT(0, F1_A, CHANGE_GROW, FAULT_KILL),
		CHANGE(1, F1_A, CHANGE_GROW_EMPTY), CHANGE(1, F1_A, CHANGE_SHRINK), END}},
	{"a grower is killed before its chunk, then another mount grows", 2, 1, true, {
		{OP(OP_CHANGE, 0, F1_A), .change = CHANGE_GROW, .fault = FAULT_KILL, .at = 1},
		CHANGE(1, F1_A, CHANGE_GROW_EMPTY), CHANGE(1, F1_A, CHANGE_SHRINK), END}},
	{"a PUT has no answer, and its draft gets another name", 2, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LOST, .at = 1,
		 .on = "f1/a.h5/.domain.json"},
		MOVE(0, F1_A, F2_C), RESTART(0), REMOVE(1, F1_A), WAIT(1, 80), WAIT(0, 80), END}},
	{"a PUT has no answer, and another mount renames its file", 2, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LOST, .at = 1,
		 .on = "f1/a.h5/.domain.json"},
		MOVE(1, F1_A, F2_C), RESTART(0), CHANGE(1, F2_C, CHANGE_TAG), END}},
	{"a repeated commit loses its power, and its file is renamed", 2, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LATE, .at = 9}, RESTART(0), KILL(0),
		MOVE(1, F1_A, F2_C), CHANGE(1, F2_C, CHANGE_COUNT), WAIT(0, 2),
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LATE, .at = 9}, KILL(0),
		MOVE(1, F1_A, F2_A), CHANGE(1, F2_A, CHANGE_COUNT), WAIT(0, 2), END}},
	{"a failed file is written again, and its machine loses power", 2, 1, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_REFUSED, .at = 3, .many = 40},
		CREATE(0, F1_A), KILL(0), CHANGE(1, F1_A, CHANGE_TAG), END}},
	{"two mounts grow, and the first one loses its power", 2, 1, true, {
		CHANGE(0, F1_A, CHANGE_GROW), CHANGE(1, F1_A, CHANGE_GROW), KILL(0), END}},
	{"a conflict is recovered while another mount removes the file", 2, 0, false, {
		CREATE(0, F1_A), CREATE(1, F1_A), REMOVE(1, F1_A), RECOVER(0), RECOVER(1),
		REMOVE(0, F1_A), RECOVER(1), END}},
	{"two mounts change one chunk, and both changes are recovered", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_X1), SLOW(1, F1_A, CHANGE_X1), RECOVER(0), RECOVER(1),
		CHANGE(0, F1_A, CHANGE_TAG), MOVE(1, F1_A, F1_B), RECOVER(1), END}},
	{"a killed change is recovered while another mount changes the file", 2, 1, false, {
		{OP(OP_CHANGE, 0, F1_A), .change = CHANGE_TWO, .fault = FAULT_KILL, .at = 1,
		 .keeps_power = true},
		RECOVER(0), CHANGE(1, F1_A, CHANGE_TAG), MOVE(1, F1_A, F2_C), END}},
	{"a killed creation is recovered, and the recovery is killed", 2, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_KILL, .at = 2, .keeps_power = true},
		{OP(OP_RECOVER, 0, 0), .fault = FAULT_KILL, .at = 9, .keeps_power = true},
		RECOVER(0), CHANGE(1, F1_A, CHANGE_TAG), END}},
	{"a refused creation is recovered when its name is free", 2, 1, true, {
		CREATE(0, F1_B), {OP(OP_CREATE, 0, F1_A), .fault = FAULT_REFUSED, .at = 3,
		.many = 40}, RECOVER(0), CHANGE(1, F1_A, CHANGE_TAG), END}},
	{"a grower is killed at its shape, and recovered while another one grows", 2, 1, false, {
		{OP(OP_CHANGE, 0, F1_A), .change = CHANGE_GROW, .fault = FAULT_KILL, .at = 2,
		 .keeps_power = true},
		RECOVER(0), CHANGE(1, F1_A, CHANGE_GROW), CHANGE(1, F1_A, CHANGE_GROW), END}},
	{"a file is cut while another mount replaces and removes it", 2, 3, false, {
		CUT(0, F1_A, false), CREATE(1, F1_A), CUT(0, F1_A, true), MOVE(1, F1_B, F1_A),
		CUT(0, F1_A, true), CUT(0, F1_B, false), REMOVE(1, F1_A), CUT(0, F1_A, true),
		CUT(0, F1_A, false), END}},
	{"a check beside renames and removals", 2, 7, false, {
		CHECK(1), MOVE(0, F1_A, F3_E), REMOVE(0, F1_B), CHECK(2), MOVE(1, F2_A, F1_B),
		CHECK(1), MOVE(1, F3_E, F2_C), CREATE(0, F1_A), END}},
	{"a check beside programs that change and replace the files", 2, 3, false, {
		CHECK(1), SLOW(0, F1_A, CHANGE_GROW), CREATE(1, F1_B), CHECK(2),
		CHANGE(0, F1_A, CHANGE_SHRINK), CHANGE(1, F1_A, CHANGE_EXTRA), CHECK(1),
		CHANGE(0, F1_A, CHANGE_MOVE), CHANGE(1, F1_B, CHANGE_UNLINK), CHECK(2), END}},
	{"an import beside a creation of the same file", 1, 0, false, {
		IMPORT(1, F1_A), CREATE(0, F1_A), IMPORT(2, F1_A), REMOVE(0, F1_A),
		IMPORT_OVER(1, F1_A), MOVE(0, F1_A, F1_B), END}},
	{"an import replaces a file that a mount changes", 1, 1, false, {
		SLOW(0, F1_A, CHANGE_X1), IMPORT_OVER(1, F1_A), CHANGE(0, F1_A, CHANGE_TAG),
		READ(0, 2, F1_A, 4), READ(0, 2, F1_A, 3), END}},
	{"an import replaces a file that two mounts rename", 2, 1, false, {
		IMPORT_OVER(2, F1_A), MOVE(0, F1_A, F2_C), MOVE(1, F2_C, F1_A),
		IMPORT_OVER(2, F2_C), MOVE(0, F1_A, F2_C), END}},
	{"a killed import is renamed before it is continued", 1, 0, true, {
		IMPORT_FAULT(1, F1_A, false, FAULT_KILL_AFTER, 14), MOVE(0, F1_A, F2_C),
		IMPORT_FAULT(1, F1_A, false, FAULT_KILL, 15), MOVE(0, F1_A, F2_C),
		LIST(0, 0, F1_A), END}},
	{"an import has no answer, and its file is removed", 1, 0, true, {
		IMPORT_FAULT(1, F1_A, false, FAULT_LOST, 14), REMOVE(0, F1_A),
		IMPORT_FAULT(1, F1_A, false, FAULT_LOST, 14), CREATE(0, F1_A), END}},
	{"an import dies when it has replaced a file", 1, 1, true, {
		IMPORT_FAULT(1, F1_A, true, FAULT_KILL_AFTER, 14), CHANGE(0, F1_A, CHANGE_TAG),
		IMPORT_FAULT(1, F1_A, true, FAULT_KILL_AFTER, 16), MOVE(0, F1_A, F2_C), END}},
	{"a grower loses its power, and its draft is dropped", 2, 1, true, {
		CHANGE(0, F1_A, CHANGE_GROW), DROP(0), CHANGE(1, F1_A, CHANGE_GROW), END}},
	{"programs of one mount remove and rename two files", 1, 3, false, {
		MOVE_BY(0, 0, F1_A, F1_B), REMOVE_BY(0, 1, F1_B), MOVE_BY(0, 2, F1_A, F2_A),
		MOVE_BY(0, 3, F1_B, F1_A), REMOVE_BY(0, 4, F1_A), CREATE_BY(0, 5, F1_B),
		MOVE_BY(0, 0, F1_B, F1_A), MOVE_BY(0, 1, F2_A, F1_B), CREATE_BY(0, 2, F1_A),
		REMOVE_BY(0, 3, F1_B), MOVE_BY(0, 4, F1_A, F1_B), REMOVE_BY(0, 5, F1_A), END}},
	{"programs of one mount open a file that another one has just closed", 1, 1, false, {
		CHANGE(0, F1_A, CHANGE_COUNT), {OP(OP_CHANGE, 0, F1_A), .actor = 1},
		{OP(OP_CHANGE, 0, F1_A), .actor = 2, .change = CHANGE_TAG},
		CREATE_BY(0, 3, F1_B), {OP(OP_CHANGE, 0, F1_B), .actor = 4},
		CHANGE(0, F1_B, CHANGE_COUNT), {OP(OP_CHANGE, 0, F1_A), .actor = 1},
		CREATE_BY(0, 2, F1_B), {OP(OP_CHANGE, 0, F1_B), .actor = 3},
		{OP(OP_CHANGE, 0, F1_A), .actor = 4, .change = CHANGE_X1},
		REMOVE_BY(0, 5, F1_B), CREATE_BY(0, 5, F1_B), END}},
	{"a mount renames and removes files that it has just closed", 1, 0, false, {
		CREATE_BY(0, 0, F1_A), MOVE_BY(0, 1, F1_A, F1_B), REMOVE_BY(0, 2, F1_A),
		CREATE_BY(0, 3, F1_A), MOVE_BY(0, 4, F1_A, F1_B), MOVE_BY(0, 5, F1_B, F1_A),
		CREATE_BY(0, 0, F1_A), {OP(OP_CHANGE, 0, F1_A), .actor = 1},
		MOVE_BY(0, 2, F1_A, F1_B), CREATE_BY(0, 3, F1_B), REMOVE_BY(0, 4, F1_B),
		{OP(OP_CHANGE, 0, F1_A), .actor = 5}, CREATE_BY(0, 0, F1_B),
		MOVE_BY(0, 1, F1_B, F1_A), REMOVE_BY(0, 2, F1_A), MOVE_BY(0, 5, F1_B, F1_A), END}},
	{"programs of one mount open two files while another one counts", 2, 3, false, {
		READ(0, 0, F1_A, 0), READ(0, 1, F1_A, 0), READ(0, 2, F1_B, 0),
		CHANGE(1, F1_A, CHANGE_COUNT), CHANGE(1, F1_B, CHANGE_COUNT),
		READ(0, 0, F1_B, 0), READ(0, 1, F1_A, 0), READ(0, 2, F1_A, 0),
		CHANGE(1, F1_A, CHANGE_COUNT), CHANGE(1, F1_A, CHANGE_COUNT),
		READ(0, 0, F1_A, 0), READ(0, 1, F1_B, 0), READ(0, 2, F1_A, 0),
		CHANGE(1, F1_B, CHANGE_COUNT), CHANGE(1, F1_A, CHANGE_COUNT),
		READ(0, 0, F1_A, 0), READ(0, 1, F1_A, 0), READ(0, 2, F1_B, 0), END}},
	{"an open is slow while another mount counts", 2, 1, false, {
		{OP(OP_READ, 0, F1_A), .fault = FAULT_SLOW, .at = 10, .all = true},
		CHANGE(1, F1_A, CHANGE_COUNT), {OP(OP_WAIT, 0, 0), .actor = 1, .waits = 2},
		READ(0, 1, F1_A, 0), {OP(OP_WAIT, 0, 0), .actor = 2, .waits = 3},
		READ(0, 2, F1_A, 0), CHANGE(1, F1_A, CHANGE_COUNT), END}},
	{"programs of one mount read while it counts", 1, 3, false, {
		READ(0, 1, F1_A, 0), READ(0, 2, F1_A, 0), READ(0, 3, F1_B, 0), READ(0, 4, F1_A, 0),
		READ(0, 5, F1_B, 0), CHANGE(0, F1_A, CHANGE_COUNT), READ(0, 1, F1_A, 0),
		READ(0, 2, F1_A, 0), READ(0, 3, F1_A, 0), CHANGE(0, F1_A, CHANGE_COUNT),
		READ(0, 4, F1_B, 0), READ(0, 5, F1_A, 0), CHANGE(0, F1_A, CHANGE_COUNT),
		READ(0, 1, F1_B, 0), READ(0, 2, F1_A, 0), READ(0, 3, F1_A, 0), END}},
	{"a file is removed or replaced while it is renamed over another one", 3, 5, false, {
		MOVE(0, F1_A, F2_A), CREATE(1, F1_A), REMOVE(2, F1_A), WAIT(2, 40),
		MOVE(0, F1_A, F2_A), END}},
	{"an object that was removed gets a link again", 2, 1, false, {
		CHANGE(0, F1_A, CHANGE_EXTRA), SLOW(1, F1_A, CHANGE_MOVE),
		CHANGE(0, F1_A, CHANGE_UNEXTRA), SLOW(1, F1_A, CHANGE_MOVE),
		CHANGE(0, F1_A, CHANGE_EXTRA), CHANGE(0, F1_A, CHANGE_UNEXTRA), WAIT(0, 40),
		WAIT(1, 40), END}},
	{"a mount recovers a file that its programs use", 1, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_KILL, .at = 1,
		 .on = "f1/a.h5/.domain.json"},
		MOVE_BY(0, 1, F1_A, F1_B), CREATE_BY(0, 2, F1_A), REMOVE_BY(0, 3, F1_B),
		MOVE_BY(0, 4, F1_A, F1_B), END}},
	{"programs hold files while the disk of the journal fails", 2, 0, false, {
		HOLD(0, 0), KILL(0), HOLD(0, 0), KILL(0), HOLD(0, 0), KILL(0), HOLD(0, 0), KILL(0),
		HOLD(0, 0), KILL(0), HOLD(0, 0), KILL(0), HOLD(1, 0), KILL(1), HOLD(1, 0), KILL(1),
		HOLD(1, 0), KILL(1), HOLD(1, 0), KILL(1), HOLD(1, 0), KILL(1), HOLD(1, 0), KILL(1),
		END}},
	{"a slow PUT over a file, whose storage is due meanwhile", 2, 1, false, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_SLOW, .at = 1,
		 .on = "f1/a.h5/.domain.json"},
		WAIT(1, 80), END}},
	{"a mount is killed after it has removed objects", 1, 1, true, {
		CHANGE(0, F1_A, CHANGE_EXTRA), CHANGE(0, F1_A, CHANGE_UNLINK),
		CHANGE(0, F1_A, CHANGE_UNEXTRA), KILL(0), WAIT(0, 40), END}},
	{"a killed rename is finished by the next mount", 1, 1, true, {
		MOVE_FAULT(0, F1_A, F2_C, FAULT_KILL, "f1/a.h5"), WAIT(0, 40), END}},
	{"a rename over a file has no answer", 1, 3, true, {
		MOVE_FAULT(0, F1_A, F1_B, FAULT_LOST, "f1/b.h5"), WAIT(0, 40), END}},
	{"a removal is sent twice, and the file is imported again meanwhile", 1, 1, false, {
		{OP(OP_REMOVE, 0, F1_A), .fault = FAULT_REPEATED, .at = 1,
		 .on = "f1/a.h5/.domain.json"}, IMPORT(1, F1_A), IMPORT(2, F1_A),
		IMPORT(3, F1_A), END}},
	{"a new file is stored under another name, and its first PUT arrives late", 2, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LATE, .at = 1,
		 .on = "f1/a.h5/.domain.json"},
		MOVE(0, F1_A, F2_C), RESTART(0), WAIT(1, 2), REMOVE(1, F1_A), WAIT(1, 40),
		REMOVE(1, F1_A), WAIT(1, 40), END}},
	{"the second PUT stores a file, it is removed, the first one arrives", 2, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LATE, .at = 1,
		 .on = "f1/a.h5/.domain.json"},
		RESTART(0), REMOVE(1, F1_A), WAIT(0, 40), END}},
	{"an object of a new file arrives late, when the file is changed", 1, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LATE, .at = 9},
		CHANGE(0, F1_A, CHANGE_COUNT), CHANGE(0, F1_A, CHANGE_CELL),
		CHANGE(0, F1_A, CHANGE_COUNT), CHANGE(0, F1_A, CHANGE_X0),
		CHANGE(0, F1_A, CHANGE_COUNT), END}},
	{"a new file is removed before it is stored, and its PUT arrives late", 1, 0, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LATE, .at = 1,
		 .on = "f1/a.h5/.domain.json"},
		REMOVE(0, F1_A), WAIT(0, 40), WAIT(0, 40), END}},
	{"a mount stores a file whose PUT has had no answer", 1, 1, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_LOST, .at = 1,
		 .on = "f1/a.h5/.domain.json"},
		CREATE(0, F1_A), {OP(OP_CREATE, 0, F1_B), .fault = FAULT_LOST, .at = 1,
		 .on = "f1/b.h5/.domain.json"}, CHANGE(0, F1_B, CHANGE_TAG),
		CREATE(0, F1_B), RESTART(0), END}},
	{"a grower is killed at its shape while another mount grows", 2, 1, false, {
		{OP(OP_CHANGE, 0, F1_A), .change = CHANGE_GROW, .fault = FAULT_KILL, .at = 2,
		 .keeps_power = true},
		CHANGE(1, F1_A, CHANGE_GROW_EMPTY), END}},
	{"an unmount cannot delete the storage of removed files", 1, 3, true, {
		REMOVE(0, F1_A),
		{OP(OP_RESTART, 0, 0), .fault = FAULT_REFUSED, .at = 1, .many = 40}, WAIT(0, 40),
		REMOVE(0, F1_B), {OP(OP_RESTART, 0, 0), .fault = FAULT_KILL, .at = 1,
		.keeps_power = true}, WAIT(0, 40), RESTART(0), END}},
	{"files take the names of plain objects", 2, 2 | PLAIN(F1_A) | PLAIN(F2_A), true, {
		CREATE(0, F1_A), CHANGE(1, F1_A, CHANGE_TAG), MOVE(1, F1_B, F2_A),
		CHANGE(0, F2_A, CHANGE_X0), RESTART(0), END}},
	{"files take the names of plain objects, and requests for these fail", 1,
	 PLAIN(F1_A) | PLAIN(F2_A) | PLAIN(F1_B) | PLAIN(F2_C), true, {
		CREATE_FAULT(0, F1_A, FAULT_KILL_AFTER, "f1/a.h5"),
		CREATE_FAULT(0, F2_A, FAULT_KILL, "f2/a.h5"), RECOVER(0),
		CREATE_FAULT(0, F1_B, FAULT_LOST, "f1/b.h5"), RESTART(0),
		CREATE_FAULT(0, F2_C, FAULT_REFUSED, "f2/c.h5"), RESTART(0),
		CREATE_FAULT(0, F2_A, FAULT_KILL_AFTER, "f2/a.h5/.domain.json"),
		CHANGE(0, F1_A, CHANGE_TAG), CHANGE(0, F2_C, CHANGE_X0), END}},
	{"a file to which a domain refers is replaced", 2, 0, false, {
		LINKS(0, 0), LINKS(1, 0), LINKS(0, 1), LINKS(1, 1), LINKS(0, 0), LINKS(1, 0),
		LINKS(0, 1), LINKS(1, 1), LINKS(0, 0), END}},
	{"a killed creation is renamed before it is recovered", 2, 0, false, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_KILL_AFTER, .at = 1,
		 .on = "f1/a.h5/.domain.json", .keeps_power = true},
		{OP(OP_RENAME, 1, F1_A), .to = F2_C, .follows = 1},
		{OP(OP_WAIT, 0, 0), .waits = 2, .follows = 2},
		{OP(OP_CHANGE, 1, F2_C), .change = CHANGE_TAG, .follows = 3}, END}},
	{"three mounts grow one dataset", 3, 1, false, {
		SLOW(0, F1_A, CHANGE_GROW), SLOW(1, F1_A, CHANGE_GROW),
		SLOW(2, F1_A, CHANGE_GROW), SLOW(0, F1_A, CHANGE_GROW),
		SLOW(1, F1_A, CHANGE_GROW_EMPTY), SLOW(2, F1_A, CHANGE_GROW_EMPTY),
		SLOW(0, F1_A, CHANGE_GROW_EMPTY), END}},
	{"two mounts grow both dimensions of a dataset", 2, 1, false, {
		SLOW(0, F1_A, CHANGE_TALLER), SLOW(1, F1_A, CHANGE_WIDER),
		SLOW(0, F1_A, CHANGE_LARGER), SLOW(1, F1_A, CHANGE_LARGER),
		CHANGE(0, F1_A, CHANGE_SMALLER), CHANGE(1, F1_A, CHANGE_TALLER),
		READ(1, 1, F1_A, 4), READ(0, 1, F1_A, 3), END}},
	{"a grower is dropped, then another mount grows both dimensions", 2, 1, true, {
		CHANGE_FAULT(0, F1_A, CHANGE_WIDER, FAULT_KILL), DROP(0), WAIT(1, 2),
		CHANGE(1, F1_A, CHANGE_LARGER),
		CHANGE_FAULT(0, F1_A, CHANGE_TALLER, FAULT_KILL), DROP(0), WAIT(1, 2),
		CHANGE(1, F1_A, CHANGE_LARGER), CHANGE(0, F1_A, CHANGE_SMALLER), END}},
	{"files are stored while the disk of the journal is full", 1, 0, true, {
		CREATE_FULL(0, F1_A), CREATE_FULL(0, F1_B), CREATE_FULL(0, F1_A),
		CREATE_FULL(0, F1_B), CREATE_FULL(0, F1_A), CREATE_FULL(0, F1_B),
		CREATE_FULL(0, F1_A), CREATE_FULL(0, F1_B), KILL(0), REMOVE(0, F1_A), END}},
	{"a PUT without an answer arrives when the file is deleted", 2, 1, true, {
		MOVE_FAULT(0, F1_A, F2_C, FAULT_LATE, "f2/c.h5"), REMOVE(1, F1_A), WAIT(1, 80),
		END}},
	/* The texts of operations 1, 5, 9 and 13 are so long: see session.c. */
	{"texts are too long for the plan of a commit", 2, 1, true, {
		CHANGE(1, F1_A, CHANGE_TAG), CHANGE_DISK(0, F1_A, CHANGE_NOTE), KILL(0),
		CHANGE(1, F1_A, CHANGE_TAG), WAIT(0, 2),
		CHANGE_FAULT(0, F1_A, CHANGE_WORD, FAULT_KILL_AFTER), CHANGE(1, F1_A, CHANGE_TAG),
		RESTART(0), WAIT(0, 2), CHANGE_FAULT(0, F1_A, CHANGE_NOTE, FAULT_KILL),
		CHANGE(1, F1_A, CHANGE_COUNT), RESTART(0), WAIT(0, 2),
		CHANGE_DISK(0, F1_A, CHANGE_WORD), KILL(0), END}},
	{"programs of one mount write the same files", 1, 0, false, {
		SHARED(0, 0), SHARED(0, 1), SHARED(0, 2), SHARED(0, 3), SHARED(0, 0),
		SHARED(0, 1), SHARED(0, 2), SHARED(0, 3), SHARED(0, 4), WAIT(0, 2),
		SHARED(0, 0), SHARED(0, 1), SHARED(0, 2), SHARED(0, 3), SHARED(0, 4), END}},
	{"programs of one mount make a file while others look for it", 1, 0, false, {
		BRIEF(0, 0), BRIEF(0, 1), BRIEF(0, 2), BRIEF(0, 3), BRIEF(0, 4), END}},
	{"programs write the same files while commits fail", 1, 0, false, {
		SHARED_FAULT(0, 0, FAULT_REFUSED, 2), SHARED(0, 1), SHARED(0, 2), SHARED(0, 3),
		SHARED_FAULT(0, 4, FAULT_FAILED, 1), KILL_BY(0, 3), SHARED(0, 0),
		SHARED_FAULT(0, 1, FAULT_LOST, 1), SHARED(0, 2), SHARED(0, 4), SHARED(0, 3),
		KILL_BY(0, 3), SHARED_FAULT(0, 0, FAULT_FAILED, 1), SHARED(0, 1),
		SHARED_FAULT(0, 2, FAULT_KILL, 2), SHARED(0, 4), SHARED(0, 3), KILL_BY(0, 3), END}},
	{"programs write the same files while their mount is killed", 1, 0, false, {
		SHARED(0, 0), SHARED(0, 1), SHARED(0, 2), SHARED(0, 3), SHARED(0, 4), KILL_BY(0, 4),
		SHARED(0, 0), SHARED(0, 1), SHARED(0, 2), SHARED(0, 3), KILL_BY(0, 3),
		SHARED(0, 0), SHARED(0, 1), SHARED(0, 2), SHARED(0, 4), KILL_BY(0, 4), SHARED(0, 3),
		SHARED(0, 2), END}},
	{"programs write the same files while the disk of the journal fails", 1, 0, false, {
		SHARED_DISK(0, 0), SHARED_DISK(0, 1), SHARED(0, 2), SHARED_DISK(0, 0),
		SHARED_DISK(0, 1), SHARED_DISK(0, 2), SHARED(0, 0), SHARED_DISK(0, 3),
		RESTART(0), SHARED_DISK(0, 0), SHARED(0, 1), SHARED_DISK(0, 2), SHARED_DISK(0, 3),
		SHARED_DISK(0, 0), SHARED_DISK(0, 1), SHARED_DISK(0, 2), SHARED(0, 3), END}},
	{"programs list and read what others put", 2, 0, false, {
		STORES(0, 0), STORES(1, 0), STORES(0, 1), STORES(1, 1), STORES(0, 0), WAIT(1, 2),
		STORES(0, 1), STORES(1, 0), STORES(1, 1), WAIT(0, 2), STORES(0, 0), STORES(1, 0),
		STORES(0, 1), STORES(1, 1), RESTART(1), STORES(0, 0), STORES(1, 0), END}},
	{"requests fail while programs list what others put", 3, 0, false, {
		STORES_FAULT(0, 0, FAULT_REFUSED), STORES(1, 0), STORES_FAULT(2, 0, FAULT_FAILED),
		STORES(0, 1), STORES_FAULT(1, 0, FAULT_SLOW), STORES(2, 0), WAIT(0, 2),
		STORES_FAULT(0, 0, FAULT_KILL), STORES_FAULT(1, 0, FAULT_EXPIRED), STORES(2, 0),
		STORES(0, 1), STORES_FAULT(2, 0, FAULT_REFUSED), STORES(1, 0), WAIT(2, 35),
		STORES(0, 0), STORES(1, 0), STORES(2, 0), END}},
	{"programs change plain objects while answers are lost", 2, 0, false, {
		PLAINS(0, 0), PLAINS_FAULT(0, 0, FAULT_REPEATED), PLAINS(1, 0),
		PLAINS_FAULT(1, 0, FAULT_REPEATED), PLAINS_FAULT(0, 0, FAULT_REPEATED),
		PLAINS(1, 0), PLAINS_FAULT(0, 0, FAULT_LOST), PLAINS_FAULT(1, 0, FAULT_REPEATED),
		PLAINS(0, 0), PLAINS(1, 0), PLAINS_FAULT(0, 0, FAULT_REPEATED), PLAINS(1, 0),
		PLAINS_FAULT(0, 0, FAULT_REPEATED), PLAINS(0, 0), END}},
	{"programs set the lists of files that others replace", 3, 0, false, {
		ACLS(0, 0), ACLS(1, 0), ACLS(2, 0), ACLS(0, 0), ACLS(1, 0), ACLS(2, 0), END}},
	{"programs make and remove folders and their files", 2, 0, false, {
		FOLDERS(0, 0), FOLDERS(1, 0), FOLDERS(0, 0), FOLDERS(1, 0), FOLDERS(0, 0),
		FOLDERS(1, 0), FOLDERS(0, 0), FOLDERS(1, 0), END}},
	{"programs rename folders while requests fail and mounts are killed", 3, 0, false, {
		FOLDERS(0, 0), FOLDERS_FAULT(1, 0, FAULT_REFUSED), FOLDERS_FAULT(0, 0, FAULT_KILL),
		FOLDERS_FAULT(2, 0, FAULT_LOST), WAIT(0, 2), FOLDERS_FAULT(0, 0, FAULT_KILL_AFTER),
		END}},
	{"a mount renames folders, and is killed", 1, 0, true, {
		FOLDERS(0, 0), FOLDERS(0, 0), FOLDERS_FAULT(0, 0, FAULT_KILL), FOLDERS(0, 0),
		FOLDERS_FAULT(0, 0, FAULT_REFUSED), FOLDERS(0, 0),
		FOLDERS_FAULT(0, 0, FAULT_KILL_LATE), FOLDERS(0, 0), END}},
	{"a file is removed when its commit has failed, and its mount is killed", 1, 0, false, {
		HOLD_REFUSED(0, 0), REMOVE_SHARED(0, 1), KILL_WHEN(2, 1), HOLD_REFUSED(0, 0),
		REMOVE_SHARED(0, 1), KILL_WHEN(2, 4), HOLD_REFUSED(0, 0), REMOVE_SHARED(0, 1),
		KILL_WHEN(2, 7), END}},
	{"a new file is written on when another mount has changed it", 2, 0, false, {
		CREATE_BY(0, 0, F1_A), WRITE_ON(1, F1_A, CHANGE_TAG, 3),
		WRITE_ON(2, F1_A, CHANGE_X1, 3), CHANGE_AFTER(1, F1_A, CHANGE_COUNT, 0),
		CREATE_BY(0, 0, F1_B), WRITE_ON(1, F1_B, CHANGE_TAG, 7),
		WRITE_ON(2, F1_B, CHANGE_X1, 7),
		CHANGE_AFTER(1, F1_B, CHANGE_COUNT, 4), END}},
	{"the power fails while files are stored and changed", 2, 1, true, {
		CREATE(0, F1_B), CHANGE(0, F1_A, CHANGE_TWO), CHANGE(1, F1_B, CHANGE_COUNT),
		CHANGE(0, F1_A, CHANGE_EXTRA), CREATE(0, F1_B), CHANGE(1, F1_A, CHANGE_TAG),
		CHANGE(1, F1_B, CHANGE_TAG), SWEEP(250)}},
	{"the power fails while a failed file is written again", 2, 1, true, {
		{OP(OP_CREATE, 0, F1_A), .fault = FAULT_REFUSED, .at = 3, .many = 40},
		CREATE(0, F1_A), CHANGE(1, F1_A, CHANGE_TAG), CHANGE(0, F1_A, CHANGE_TWO),
		SWEEP(250)}},
	/* The texts of operations 1 and 5 are so long: see session.c. */
	{"the power fails while a plan has texts that are too long", 2, 1, true, {
		CHANGE(1, F1_A, CHANGE_TAG), CHANGE(0, F1_A, CHANGE_NOTE),
		CHANGE(1, F1_A, CHANGE_TAG), CHANGE(0, F1_A, CHANGE_COUNT),
		CHANGE(1, F1_A, CHANGE_TAG), CHANGE(0, F1_A, CHANGE_WORD),
		CHANGE(1, F1_A, CHANGE_TAG), SWEEP(250)}},
	{"the power fails while a refused file is deleted", 2, 0, false, {
		{OP(OP_CREATE, 0, F1_A), .waits = SLOW_STEPS}, CREATE(1, F1_A), REMOVE(1, F1_A),
		WAIT(1, 40), {OP(OP_CREATE, 0, F1_A), .waits = SLOW_STEPS}, CREATE(1, F1_A),
		REMOVE(1, F1_A), SWEEP(250)}},
	{"the power fails while programs write files whose commits fail", 1, 0, false, {
		HOLD_REFUSED(0, 0), HOLD_SHARED(0, 1), HOLD_SHARED(0, 2), HOLD_REFUSED(0, 0),
		HOLD_REFUSED(0, 1), HOLD_REFUSED(0, 2), SHARED(0, 0), SHARED(0, 1), SWEEP(400)}},
	/* Those from here on are LATE_SCRIPTS: see below. */
	{"domains and plain objects replace each other", 2, 0, false, {
		MIXED(0, 0), MIXED(1, 0), MIXED(0, 0), MIXED(1, 0), MIXED(0, 0), MIXED(1, 0), END}},
	{"three mounts let domains and plain objects replace each other", 3, 0, false, {
		MIXED(0, 0), MIXED(1, 0), MIXED(2, 0), MIXED(0, 0), MIXED(1, 0), END}},
	{"two mounts rename a plain object over one domain", 2, 0, false, {
		MIXED_BRIEF(0), MIXED_BRIEF(1), MIXED_BRIEF(0), MIXED_BRIEF(1), MIXED_BRIEF(0),
		MIXED_BRIEF(1), END}},
	{"requests fail while domains and plain objects replace each other", 2, 0, false, {
		MIXED(0, 0), MIXED_FAULT(1, 0, FAULT_REFUSED), MIXED_FAULT(0, 0, FAULT_LOST),
		MIXED(1, 0), MIXED_FAULT(0, 0, FAULT_KILL), END}},
	{"a mount removes a file that its programs have open for a change", 1, 3, false, {
		READ(0, 1, F1_A, 12), WAIT_BY(2, 8), OPEN_BY(2, F1_A),
		WAIT_BY(3, 12), REMOVE_BY(0, 3, F1_A), SLEEP_OPEN(4, F1_B, CHANGE_TAG, 60),
		WAIT_BY(5, 5), REMOVE_BY(0, 5, F1_B), WAIT_BY(5, 60), END}},
	{"a file that has been changed is changed again before its last close", 1, 3, false, {
		STAY_OPEN(0, F1_A, CHANGE_TWO, 1), STAY_OPEN(1, F1_A, CHANGE_TWO, 2),
		{OP(OP_CHANGE, 0, F1_A), .actor = 2, .change = CHANGE_TWO},
		STAY_OPEN(3, F1_B, CHANGE_TWO, 4), STAY_OPEN(4, F1_B, CHANGE_X1, 5),
		{OP(OP_CHANGE, 0, F1_B), .actor = 5}, END}},
	{"a plain object becomes a domain while programs of its mount open it", 1, 0, false, {
		TURN(0, 0), TURN(0, 1), TURN(0, 0), TURN(0, 1), END}},
	{"a new file is written again until it can be stored", 1, 0, true, {
		CREATE_AGAIN(0, F1_A), CREATE_AGAIN(0, F1_B), CREATE_AGAIN(0, F1_A),
		CREATE_AGAIN(0, F2_A), WAIT(0, 40), END}},
};
/* clang-format on */

unsigned int scripts_count(void)
{
	return sizeof(scripts) / sizeof(scripts[0]);
}

/* What was added later takes a part of the seeds, so that all others keep their histories. */
unsigned int scripts_of(uint64_t seed)
{
	const unsigned int first = scripts_count() - LATE_SCRIPTS;
	struct rng r = rng_derive(seed, 14);
	return rng_once_in(&r, LATE_ONE_IN) ? first + rng_below(&r, LATE_SCRIPTS)
					    : (unsigned int)(seed / 2 % first);
}

const char *scripts_name(unsigned int i)
{
	return scripts[i].name;
}

static void arm_disk(struct disk_fault *f, struct rng *r)
{
	const unsigned int first = f->at ? f->at : 150;
	*f = (struct disk_fault){.at = 1 + rng_below(r, first),
				 .many = 1 + rng_below(r, f->many),
				 .rc = rng_once_in(r, 2) ? -ENOSPC : -EIO,
				 .half = rng_once_in(r, 2)};
}

void scripts_make(struct history *h, unsigned int i, uint64_t seed)
{
	static const unsigned int switches[] = {1, 4, 16, 64};
	struct rng r = rng_derive(seed, 3);
	const struct script *s = &scripts[i];
	*h = (struct history){.seed = seed,
			      .order = seed,
			      .name = s->name,
			      .engines = s->engines,
			      .present = s->present};
	h->actors = h->engines;
	h->switches = switches[rng_below(&r, 4)];
	h->workers = 1 + rng_below(&r, 4);
	history_service(h, &r);
	h->one_by_one = s->has_order && !rng_once_in(&r, 3);
	for (; s->ops[h->nops].kind != OP_KINDS; h->nops++) {
		struct op *op = &h->ops[h->nops];
		*op = s->ops[h->nops];
		op->actor = (process_has(op) ? 0 : op->engine) + op->actor * h->engines;
		if (op->kind == OP_IMPORT) {
			op->again = rng_once_in(&r, 2);
			op->waits = rng_below(&r, SLOW_STEPS);
		}
		h->actors = op->actor < h->actors ? h->actors : op->actor + 1;
		if (op->waits == SLOW_STEPS)
			op->waits = 1 + rng_below(&r, SLOW_STEPS);
		if ((op->kind == OP_STORES || op->kind == OP_PLAIN || op->kind == OP_FOLDERS ||
		     op->kind == OP_MIXED) &&
		    op->fault)
			op->at = 1 + rng_below(&r, op->kind == OP_PLAIN	    ? 6
						   : op->kind == OP_MIXED   ? 30
						   : op->kind == OP_FOLDERS ? 24
									    : 60);
		if (op->rewrites) {
			op->at = 1 + rng_below(&r, 12);
			op->many = 1 + rng_below(&r, 10);
		}
		if (op->disk.many)
			arm_disk(&op->disk, &r);
		if (!op->follows && h->one_by_one)
			op->follows = h->nops;
	}
	h->sweep = s->ops[h->nops].at;
	history_programs(h);
	history_pages(h);
}
