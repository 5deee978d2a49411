/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps of drafts: as they are, and with the right checksum in each record. The first
 * byte says whether the machine was started again. Properties: a map that is accepted, and then cut
 * behind its last record that counts, gives the same file; every byte of the file has one place; a
 * record that is accepted is what the encoder writes.
 */
#include <errno.h>
#include <string.h>

#include <base/frame.h>
#include <base/mem.h>

#include "overlay/map.h"
#include "require.h"

enum { BUDGET = 4 << 20 };

struct replay {
	struct layers layers;
	struct frames_memory memory;
	struct budget_charge charge;
	struct map_state state;
	int rc;
};

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memcpy(buf, (const uint8_t *)ctx + offset, n);
	return 0;
}

static void run(struct replay *r, struct budget *budget, const uint8_t *data, size_t size,
		bool same_boot)
{
	struct source bytes = {.size = size, .read_at = read_at, .ctx = (void *)(uintptr_t)data};
	struct err err = ERR_INIT;
	*r = (struct replay){.charge = {.budget = budget, .use = BUDGET_DRAFTS}};
	r->state = (struct map_state){
		.layers = &r->layers, .memory = &r->memory, .charge = &r->charge};
	r->rc = map_replay(&bytes, same_boot, &r->state, &err);
	require(r->rc == 0 || err.msg[0] != '\0');
	require(r->rc == 0 || r->rc == -EBADMSG || r->rc == -ENODATA || r->rc == -ENOMEM);
	require(r->memory.used <= r->memory.allowed && r->memory.allowed == r->charge.bytes);
}

static void end(struct replay *r)
{
	layers_release(&r->layers);
	require(r->memory.used == 0);
	budget_set(&r->charge, 0, NULL);
}

static void compare(const struct layers *a, const struct layers *b)
{
	require(a->size == b->size && a->n == b->n && a->size <= FRAMES_LIMIT);
	unsigned int runs = 0;
	for (uint64_t at = 0; at < a->size && runs < 10000; runs++) {
		const struct run x = layers_find(a, at, a->size);
		const struct run y = layers_find(b, at, b->size);
		require(x.kind == y.kind && x.end == y.end && x.end > at && x.end <= a->size);
		require(x.kind != RUN_BENEATH || x.end <= a->beneath);
		at = x.end;
	}
}

static void check(struct budget *budget, const uint8_t *data, size_t size, bool same_boot)
{
	struct replay whole, cut;
	run(&whole, budget, data, size, same_boot);
	if (whole.rc == 0) {
		run(&cut, budget, data, (size_t)whole.state.records * MAP_RECORD, same_boot);
		require(cut.rc == 0);
		compare(&whole.layers, &cut.layers);
		end(&cut);
	}
	end(&whole);
}

static void fix_record(uint8_t *bytes, uint32_t number)
{
	struct map_record r;
	uint8_t again[MAP_RECORD];
	frame_seal(bytes, MAP_START + bytes[0] % MAP_SYNC, MAP_RECORD - FRAME_HEADER);
	require(map_decode(bytes, number, &r) == 0);
	map_encode(&r, again);
	require(memcmp(again, bytes, MAP_RECORD) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const bool same_boot = data[0] % 2;
	struct budget *budget = budget_new(&(struct budget_limits){
		.bytes = BUDGET, .metadata_min = BUDGET, .option = "cache_size"});
	uint8_t *map = malloc(size);
	require(budget && map);
	size--;
	memcpy(map, data + 1, size);
	check(budget, map, size, same_boot);
	for (size_t i = 0; (i + 1) * MAP_RECORD <= size; i++)
		fix_record(map + i * MAP_RECORD, (uint32_t)i);
	check(budget, map, size, same_boot);
	free(map);
	budget_free(budget);
	return 0;
}
