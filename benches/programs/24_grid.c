/* Indices in two dimensions: steps in a maze, the way read from symbolic bytes. */
#include <klee/klee.h>
static const char maze[7][11]={"+-+---+---+","| |     |#|","| | --+ | |","| |   | | |","| +-- | | |","|     |   |",
  "+-----+---+"};
int main(void){
  unsigned char s[4]; klee_make_symbolic(s,sizeof s,"s");
  int x=s[0],y=s[1]; klee_assume((x<11)&(y<7));
  if(maze[y][x]=='#') return 1;
  if(maze[y][x]!=' ') return 2;
  int dx=s[2],dy=s[3]; klee_assume((dx<3)&(dy<3));
  x+=dx-1; y+=dy-1;
  if(maze[y][x]=='|') return 3;
  if(maze[y][x]=='-') return 4;
  return 0;
}
