/* JSON validator over 5 symbolic characters. */
#include <klee/klee.h>
static const char*p;
static int value(int depth);
static int list(char end,int pairs,int depth){
  p++; if(*p==end){ p++; return 1; }
  for(;;){
    if(pairs){ if(*p!='"'||!value(depth)) return 0; if(*p++!=':') return 0; }
    if(!value(depth+1)) return 0;
    if(*p==end){ p++; return 1; }
    if(*p++!=',') return 0;
  }
}
static int value(int depth){
  if(depth>3) return 0;
  if(*p=='[') return list(']',0,depth);
  if(*p=='{') return list('}',1,depth);
  if(*p=='"'){ for(p++;*p&&*p!='"';p++) if(*p=='\\'&&!*++p) return 0; return *p++=='"'; }
  if(*p=='-') p++;
  if(*p<'0'||*p>'9') return 0;
  while(*p>='0'&&*p<='9') p++;
  return 1;
}
int main(void){ char s[6]; klee_make_symbolic(s,sizeof s,"s"); s[5]=0; p=s; return value(0)&&!*p; }
