/* SPDX-License-Identifier: Apache-2.0 */
/* A user block that is an object of its own: it is read when the domain is opened, and its bytes
 * are those that its name says. */
#include <openssl/evp.h>

#include <base/hex.h>
#include <bucket/schemas.h>

#include "gate.h"
#include "revalidate.h"

enum { SIZE = 8192, LENGTH = 5000 };

struct block {
	uint8_t bytes[LENGTH];
	char name[64 + 1 + 16 + 1], key[160];
};

static void make(struct block *b, uint8_t first)
{
	uint8_t sum[EVP_MAX_MD_SIZE];
	for (size_t i = 0; i < LENGTH; i++)
		b->bytes[i] = (uint8_t)(first + i % 251 + 1);
	assert_int_equal(EVP_Digest(b->bytes, LENGTH, sum, NULL, EVP_sha256(), NULL), 1);
	hex_encode(sum, 32, b->name);
	strcat(b->name, "-00000000000000aa");
	snprintf(b->key, sizeof(b->key), SMALL_PREFIX "/.hsmount-userblock-%s", b->name);
}

static void put_root(struct fixture *f, const struct block *b, const char *more)
{
	char text[1024];
	snprintf(text, sizeof(text),
		 "{" SMALL_HEAD(SMALL_ROOT) ",'links':{'ints':" SMALL_HARD(
			 SMALL_INTS, "2") "},'attributes':{},'hsmount':{'userBlock':{'size':%d,'"
					  "object':'%s'}}%s}",
		 SIZE, b->name, more);
	assert_int_equal(small_put(f->store, SMALL_PREFIX "/.group.json", text), 0);
}

static void put_block(struct fixture *f, const struct block *b, size_t n)
{
	assert_int_equal(call_put(f->store, b->key, b->bytes, n, NULL, NULL, NULL), 0);
}

static void check_block(const struct domain *d, const struct block *b)
{
	uint8_t bytes[SIZE];
	const struct user_block *found = tree_user_block(domain_tree(d));
	assert_non_null(found);
	assert_int_equal(found->size, SIZE);
	user_block_read(found, 0, bytes, SIZE);
	if (b)
		assert_memory_equal(bytes, b->bytes, LENGTH);
	for (size_t i = b ? LENGTH : 0; i < SIZE; i++)
		assert_int_equal(bytes[i], 0);
	assert_non_null(find(d, SMALL_INTS));
}

/* One GET more than without a block, and none if an earlier snapshot has it. */
static void it_is_read_once(void **state)
{
	struct fixture *f = *state;
	struct block b;
	struct cost without, cost;
	make(&b, 0);
	domain_unref(open_again(f, NULL, &without));
	put_root(f, &b, "");
	put_block(f, &b, LENGTH);
	struct domain *d = open_again(f, NULL, &cost);
	check_block(d, &b);
	assert_int_equal(cost.gets, without.gets + 1);
	assert_int_equal(tree_problems(domain_tree(d)), 0);
	put_root(f, &b, ",'n':1");
	struct domain *later = open_again(f, d, &cost);
	assert_ptr_not_equal(later, d);
	check_block(later, &b);
	assert_int_equal(cost.gets, 2); /* the documents of the domain and of the root group */
	domain_unref(d);
	make(&b, 7);
	put_root(f, &b, "");
	put_block(f, &b, LENGTH);
	d = open_again(f, later, &cost);
	check_block(d, &b);
	assert_int_equal(cost.gets, 3);
	domain_unref(later);
	domain_unref(d);
}

static struct block later_block;
static struct fixture *later_fixture;

/* The block is another one, and the object of the first one has been deleted. */
static void change_block(struct store *inner)
{
	struct block first;
	make(&first, 0);
	put_block(later_fixture, &later_block, LENGTH);
	put_root(later_fixture, &later_block, "");
	assert_int_equal(call_delete(inner, first.key, NULL, NULL), 0);
}

/* Before each request of an open. */
static void a_block_that_is_replaced_meanwhile(void **state)
{
	bool reached = true;
	make(&later_block, 9);
	for (unsigned int at = 1; reached; at++) {
		struct fixture *f;
		struct block b;
		struct domain *d = NULL;
		assert_int_equal(setup((void **)&f), 0);
		later_fixture = f;
		make(&b, 0);
		put_root(f, &b, "");
		put_block(f, &b, LENGTH);
		struct gate *g = gate_new(f->store);
		g->other_at = at;
		g->other = change_block;
		assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
								     .store = &g->base,
								     .schemas = schema_all()},
					     "d.h5", NULL, &d, NULL),
				 0);
		reached = g->n >= at;
		const struct user_block *found = tree_user_block(domain_tree(d));
		assert_false(found->is_unknown);
		check_block(d, strcmp(found->object, b.name) == 0 ? &b : &later_block);
		domain_unref(d);
		f->store = &g->base;
		assert_int_equal(teardown((void **)&f), 0);
	}
}

static void damage_is_shown_as_zeros(void **state)
{
	struct fixture *f = *state;
	struct block b;
	struct cost cost, without;
	make(&b, 0);
	domain_unref(open_again(f, NULL, &without));
	put_root(f, &b, "");
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			put_block(f, &b, LENGTH - 1);
		if (i == 2)
			b.bytes[17] ^= 1;
		if (i == 2)
			put_block(f, &b, LENGTH);
		struct domain *d = open_again(f, NULL, &cost);
		check_block(d, NULL);
		assert_true(tree_user_block(domain_tree(d))->is_unknown);
		/* What the bucket lacks is no reason to read the domain once more. */
		assert_int_equal(cost.gets, without.gets + 1);
		assert_int_equal(cost.heads, i == 0);
		assert_int_equal(tree_problems(domain_tree(d)), 1);
		const char *why = tree_problem(domain_tree(d), 0);
		if (!strstr(why, b.key) || !strstr(why, "the user block is shown as zeros") ||
		    !strstr(why, i ? "other bytes than its name says" : "no such object"))
			fail_msg("%s", why);
		domain_unref(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_is_read_once, setup, teardown),
		cmocka_unit_test(a_block_that_is_replaced_meanwhile),
		cmocka_unit_test_setup_teardown(damage_is_shown_as_zeros, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
