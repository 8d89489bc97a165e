/* Dynamic programming: distance of 4 symbolic characters to a word. */
#include <klee/klee.h>
#define LEAST(a,b) ((a)<(b)?(a):(b))
int main(void){
  static const char word[]="tree"; char s[4]; int d[5][5]; klee_make_symbolic(s,sizeof s,"s");
  for(int i=0;i<5;i++) d[i][0]=d[0][i]=i;
  for(int i=1;i<5;i++) for(int j=1;j<5;j++){
    int t=d[i-1][j-1]+(s[i-1]!=word[j-1]), u=LEAST(d[i-1][j],d[i][j-1])+1;
    d[i][j]=LEAST(t,u);
  }
  return d[4][4];
}
