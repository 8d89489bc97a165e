#!/bin/sh
# start.sh PORT: a fresh PostgreSQL in the current folder
set -e
PATH="$(pg_config --bindir):$PATH"
if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to run as root.
  chown postgres .
  exec setpriv --reuid=postgres --regid=postgres --clear-groups /bin/sh "$0" "$@"
fi
initdb -D data --username=clerk --auth=trust --no-sync --encoding=UTF8 --locale=C
exec postgres -D data -p "$1" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c autovacuum=off
