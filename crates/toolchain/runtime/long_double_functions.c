// Transcendental functions on long double, in place of the library's.
//
// The library's versions are not written in C: in bitcode they take their argument by pointer
// where C's callers pass a value. These call the library's with what it takes.

#define LIBRARY __attribute__((weak))

// A structure is passed in memory, which is how the library's functions take their arguments.
struct boxed {
  long double value;
};

long double __sinx(struct boxed);
long double __cosx(struct boxed);
long double __tanx(struct boxed);
long double __expx(struct boxed);
long double __exp2x(struct boxed);
long double __logx(struct boxed);
long double __log2x(struct boxed);
long double __log10x(struct boxed);

LIBRARY long double sinl(long double x) { return __sinx((struct boxed){x}); }
LIBRARY long double cosl(long double x) { return __cosx((struct boxed){x}); }
LIBRARY long double tanl(long double x) { return __tanx((struct boxed){x}); }
LIBRARY long double expl(long double x) { return __expx((struct boxed){x}); }
LIBRARY long double exp2l(long double x) { return __exp2x((struct boxed){x}); }
LIBRARY long double logl(long double x) { return __logx((struct boxed){x}); }
LIBRARY long double log2l(long double x) { return __log2x((struct boxed){x}); }
LIBRARY long double log10l(long double x) { return __log10x((struct boxed){x}); }
LIBRARY void sincosl(long double x, long double *sine, long double *cosine) {
  *sine = sinl(x);
  *cosine = cosl(x);
}
