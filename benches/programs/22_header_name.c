/* One symbolic byte, 'H' or 'h', in a header name that goes through hash, table and comparisons: large terms over a byte
 * that has two values left. */
#include <klee/klee.h>
#include <string.h>
static unsigned hash(const char*s){
  unsigned h=5381;
  for(;*s;s++){ unsigned char c=*s; if(c>='A'&&c<='Z') c+=32; h=h*33^c; h^=h>>7; }
  return h;
}
static int same(const char*a,const char*b){
  for(;;a++,b++){
    char x=*a,y=*b; if(x>='A'&&x<='Z') x+=32; if(y>='A'&&y<='Z') y+=32;
    if(x!=y) return 0;
    if(!x) return 1;
  }
}
int main(void){
  static const char*names[]={"connection","host","keep-alive","proxy-connection","te","trailers","transfer-encoding",
    "upgrade"};
  char name[16]="Host"; char c; klee_make_symbolic(&c,sizeof c,"c");
  klee_assume((c=='H')|(c=='h'));
  name[0]=c;
  unsigned h=0; for(int r=0;r<200;r++) h=h*31+hash(name)+(h>>3);
  int n=0;
  for(int i=0;i<8;i++) if(same(name,names[i])) n+=i+1;
  for(int i=0;i<64;i++) if((h>>(i%32)^h*(unsigned)i)%7==3) n++;
  return n;
}
