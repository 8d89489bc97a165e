# Variables, loops, functions, pipes, redirections, here-documents, arithmetic, traps, background jobs.
name=world
echo "hello $name" | tr a-z A-Z
for i in 1 2 3; do echo "$i squared is $((i * i))"; done
count() { local n=0; while read -r line; do n=$((n + 1)); done; echo "$n lines"; }
seq 10 | count
cat >made.txt <<END
first $name
second
END
wc -l <made.txt
sed -e 's/first/1st/' -e '$d' made.txt
grep -n second made.txt && echo found
awk 'BEGIN { for (i = 0; i < 5; i++) printf "%d ", i * i; print sqrt(2) }'
case $name in w*) echo starts with w ;; *) echo no ;; esac
if [ -f made.txt ] && ! [ -e nothing ]; then echo "files are as they should be"; fi
mkdir -p folder/deep && echo x >folder/deep/file
find folder | sort
ls folder
(cd folder && echo "in a subshell: $(ls)")
false || echo "failed with $?"
sleep 1 & wait $!; echo "waited: $?"
(exit 7) & wait $!; echo "waited: $?"
trap 'echo "trapped"' USR1
kill -USR1 $$
echo "a:b:c" | { IFS=: read -r x y z; echo "$z$y$x"; }
set -- one two three; shift; echo "$# $1 ${2:-none} ${3:-none}"
echo "${name#wor} ${name%ld} ${#name}"
printf '%03d|%s\n' 7 seven
expr 6 \* 7
echo $((0x1f + 010)) $((7 / 2)) $((7 % 3)) $((1 << 20))
tar cf all.tar made.txt folder && tar tf all.tar
gzip -c made.txt | gunzip -c | md5sum
sort -r made.txt | head -n 1 | cut -d' ' -f1
echo one two | xargs -n 1 ./busybox echo item
yes_no() { [ "$1" = y ] && return 0; return 3; }
yes_no y; echo $?; yes_no n; echo $?
trap 'echo leaving' EXIT
exit 5
