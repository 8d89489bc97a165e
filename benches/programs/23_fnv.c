/* FNV-1a of 8 symbolic bytes into a hash table of 13 buckets. */
#include <klee/klee.h>
int main(void){
  unsigned char k[8]; klee_make_symbolic(k,sizeof k,"k");
  unsigned h=2166136261u;
  for(int i=0;i<8;i++) h=(h^k[i])*16777619u;
  switch(h%13){
    case 0: return 10; case 1: return 1; case 2: return 2; case 3: return 3; case 4: return 4; case 5: return 5;
    case 6: return 6; case 7: return 7; case 8: return 8; case 9: return 9; case 10: return 11; case 11: return 12;
  }
  return 0;
}
