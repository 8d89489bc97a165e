// exec:
#include <stdio.h>
#include <string.h>

struct tiny { char c; };
struct two { int a, b; };
struct pair { long a, b; };
struct mixed { int i; double d; };
struct vec3 { float x, y, z; };
struct big { int values[10]; };
struct nested { struct two two; struct { char text[5]; short s; } inner; };
struct ld { long double value; int tag; };
union number { int i; float f; unsigned char bytes[4]; };

static struct tiny tiny(char c) { return (struct tiny){c}; }
static struct two swap(struct two t) { return (struct two){t.b, t.a}; }
static struct pair add(struct pair a, struct pair b) { return (struct pair){a.a + b.a, a.b + b.b}; }
static struct mixed twice(struct mixed m) { m.i *= 2; m.d *= 2; return m; }
static struct vec3 cross(struct vec3 a, struct vec3 b) {
  return (struct vec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static struct big grow(struct big b, int by) { for (int i = 0; i < 10; i++) b.values[i] += by; return b; }
static struct nested nest(struct nested n) { n.inner.text[0] = 'X'; n.two = swap(n.two); return n; }
static struct ld long_double(struct ld l) { l.value *= 2; l.tag++; return l; }

int main(void) {
  printf("%c\n", tiny('t').c);
  struct two t = swap((struct two){1, 2});
  printf("%d %d\n", t.a, t.b);
  struct pair p = add((struct pair){1, 2}, (struct pair){10, 20});
  printf("%ld %ld\n", p.a, p.b);
  struct mixed m = twice((struct mixed){3, 1.25});
  printf("%d %g\n", m.i, m.d);
  struct vec3 v = cross((struct vec3){1, 2, 3}, (struct vec3){4, 5, 6});
  printf("%g %g %g\n", v.x, v.y, v.z);
  struct big b = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, g = grow(b, 100);
  printf("%d %d %d\n", b.values[9], g.values[0], g.values[9]);
  struct nested n = nest((struct nested){{7, 8}, {"abcd", 9}});
  printf("%d %d %s %d\n", n.two.a, n.two.b, n.inner.text, n.inner.s);
  struct ld l = long_double((struct ld){1.25L, 4});
  printf("%Lg %d\n", l.value, l.tag);
  union number u = {.f = 1.0f};
  printf("%x %d\n", u.i, u.bytes[3]);
  struct big same = g;
  printf("%d\n", memcmp(&same, &g, sizeof g));
  struct two array[3] = {[1] = {.b = 5}, [2] = {6, 7}};
  printf("%d %d %d\n", array[0].a, array[1].b, array[2].a);
  return 0;
}
