/* SPDX-License-Identifier: Apache-2.0 */
/* What version 1 of the journal has left: files as that version wrote them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/file.h>

#include <base/checksum.h>
#include <base/emit.h>
#include <journal/earlier.h>

#include "overlay_fixture.h"

#define DRAFT	"0123456789abcdef"
#define DAMAGED "1123456789abcdef"
#define NOTES	"2123456789abcdef"
#define ASIDE	"3123456789abcdef"

/* The directory of the bucket in version 1. */
static int make_version_1(const struct overlay_fixture *f, char path[256])
{
	char command[1024];
	snprintf(command, sizeof(command),
		 "umask 077; cd %s && bucket=$(ls 2) && mkdir -p 1/$bucket && cd 1/$bucket && "
		 "mkdir -p " DRAFT " " DAMAGED " unreadable/" ASIDE " 4123456789abcdef.new && "
		 "echo x >" NOTES ".garbage && echo x >" NOTES ".removed && echo x >other && "
		 "pwd >%s/where",
		 f->path, f->path);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/where", f->path);
	FILE *where = fopen(command, "r");
	assert_non_null(fgets(path, 256, where));
	fclose(where);
	unlink(command);
	path[strcspn(path, "\n")] = '\0';
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Writes a description as version 1 did. Returns a descriptor of the file. */
static int describe(int dir, const char *id, bool damaged)
{
	static const char texts[] = "home/a\0/home/a.h5\0\"etag\"";
	uint8_t bytes[4096] = "HSMDRAFT\4";
	struct emit e = emit_to(bytes + 48, sizeof(bytes) - 48);
	emit_u64(&e, 1234567890123456789);
	emit_u64(&e, 6 | 10 << 16 | UINT64_C(6) << 32);
	emit_bytes(&e, texts, sizeof(texts));
	e = emit_to(bytes + 12, 4);
	emit_u32(&e,
		 checksum_crc32c(bytes + 16, sizeof(bytes) - 16, checksum_crc32c(bytes, 12, 0)));
	bytes[70] ^= damaged;
	const int place = openat(dir, id, O_RDONLY | O_DIRECTORY);
	const int fd = openat(place, "draft", O_RDWR | O_CREAT, 0600);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	close(place);
	return fd;
}

struct seen {
	unsigned int drafts, notes;
	char text[256];
	int code;
};

static int see(void *ctx, const struct journal_earlier *item)
{
	struct seen *s = ctx;
	s->drafts += item->is_draft;
	s->notes += !item->is_draft;
	if (strcmp(item->id, DRAFT) == 0)
		snprintf(s->text, sizeof(s->text), "%s %s %lld", item->bucket->bucket, item->name,
			 (long long)item->created_ns);
	else
		assert_string_equal(item->name, "");
	return s->code;
}

static void what_is_left_is_listed(void **state)
{
	struct overlay_fixture f;
	char path[256];
	struct seen s = {.drafts = 0};
	fixture_begin(&f, 0);
	assert_int_equal(journal_each_earlier(f.path, see, &s, NULL), 0);
	assert_int_equal(journal_list_earlier(f.j, see, &s), 0);
	assert_int_equal(s.drafts + s.notes, 0);
	const int dir = make_version_1(&f, path);
	const int fd = describe(dir, DRAFT, false);
	close(describe(dir, DAMAGED, true));
	assert_int_equal(journal_list_earlier(f.j, see, &s), 0);
	assert_int_equal(s.drafts, 3); /* one of them was set aside */
	assert_int_equal(s.notes, 2);
	assert_string_equal(s.text, " /home/a.h5 1234567890123456789");
	s = (struct seen){.code = -EIO};
	assert_int_equal(journal_each_earlier(f.path, see, &s, NULL), -EIO);
	assert_int_equal(s.drafts + s.notes, 1);
	/* A process of that version has it open. */
	assert_int_equal(flock(fd, LOCK_EX), 0);
	s = (struct seen){.code = 0};
	assert_int_equal(journal_each_earlier(f.path, see, &s, NULL), 0);
	assert_int_equal(s.drafts, 2);
	close(fd);
	close(dir);
	/* Nothing of it has changed. */
	s = (struct seen){.code = 0};
	assert_int_equal(journal_each_earlier(f.path, see, &s, NULL), 0);
	assert_int_equal(s.drafts, 3);
	assert_int_equal(s.notes, 2);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_is_listed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
