/* Floats computed from three symbolic 16-bit numbers. */
#include <klee/klee.h>
int main(void){ short a,b,c; klee_make_symbolic(&a,2,"a"); klee_make_symbolic(&b,2,"b");
  klee_make_symbolic(&c,2,"c"); double m=(a+b+c)/3.0; if(m==100.0) return 1; if(m>32000.5) return 2;
  if(a*0.5+b*0.25==c) return 3; float g=a/4.0f; if(g>8000.0f) return 4; return 0; }
