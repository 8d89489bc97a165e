// An index that leaves one field of a struct for the next, or one row for the next.
// run: --check-subobjects
// paths: 5
// finding: subobject 29
// finding: subobject 32
// survives: subobject native code writes into the next field
#include <everett.h>

struct record {
    char name[8];
    int count;
    int table[2][3];
    char last[1];
};

static struct record record;

// One behind the last element is a legal address.
static char *end(struct record *of, int size) {
    return &of->name[size];
}

int main(void) {
    unsigned n = everett_range(0, 9, "n");
    switch (everett_choose(3, "way")) {
    case 0:
        if (end(&record, 8) - record.name != 8)
            return 1;
        record.name[n] = 'x';
        return record.count != 0;
    case 1:
        return record.table[0][n / 2] != 0;
    default:
        for (char *at = record.name; at < end(&record, 8); at++)
            *at = 1;
        return 0;
    }
}
