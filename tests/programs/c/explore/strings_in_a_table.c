// Names in a table at an index from the input: string functions keep the index symbolic, so all of it is one path.
// build: -O0
// build: -O2
// run:
// paths: 2
#include <assert.h>
#include <everett.h>
#include <string.h>

struct entry {
	char name[8];
	int uses;
};

static struct entry table[16];

int main(void)
{
	unsigned char index;
	everett_make_symbolic(&index, sizeof index, "index");
	if (index >= 16)
		return 1;
	char *name = table[index].name;
	memset(table, 'x', sizeof table);
	strncpy(name, "abc", sizeof table[0].name);
	strcat(name, "de");
	strncat(name, "fgh", 1);
	assert(strnlen(name, sizeof table[0].name) == 6);
	assert(strchr(name, 'd') == name + 3);
	assert(strrchr(name, 'e') == name + 4);
	assert(!strchr(name, 'g'));
	assert(memchr(name, 'f', sizeof table[0].name) == name + 5);
	assert(!memchr(name, 'x', sizeof table[0].name));
	return 0;
}
