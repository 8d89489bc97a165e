/* Adler-32, CRC-32 by a table and the Internet checksum of 4 symbolic bytes, each compared with a constant. */
#include <klee/klee.h>
int main(void){
  static unsigned table[256]; unsigned char s[4]; klee_make_symbolic(s,sizeof s,"s");
  for(unsigned i=0;i<256;i++){ unsigned c=i; for(int j=0;j<8;j++) c=c&1?0xedb88320u^c>>1:c>>1; table[i]=c; }
  unsigned a=1,b=0; for(int i=0;i<4;i++){ a=(a+s[i])%65521; b=(b+a)%65521; }
  unsigned c=~0u; for(int i=0;i<4;i++) c=table[(c^s[i])&255]^c>>8;
  unsigned w=(s[0]<<8|s[1])+(s[2]<<8|s[3]); w=(w&0xffff)+(w>>16);
  if((b<<16|a)==0x03d8018bu) return 1; /* abcd */
  if(~c==0xed82cd11u) return 2; /* abcd */
  if((~w&0xffff)==0x3a38) return 3;
  if(a==b) return 4;
  return 0;
}
