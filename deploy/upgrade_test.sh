#!/bin/bash
# Upgrades the package of an earlier program, with data, and goes back.
. /packages_lib
this=$1 earlier=$2
data=/var/lib/millrace
millrace() { setpriv --reuid millrace --regid millrace --clear-groups /usr/bin/millrace "$@"; }
has_ada() { grep -q ada@example.org <(millrace admin user list --data $data) || fail "what people made is gone $1"; }

install -D -m 600 /dev/null $conf # the earlier program may be older than the command that writes it
install_package "$earlier"
before=$(millrace version)
start_server --data $data --listen 127.0.0.1:0
printf 'correct horse battery\n' | millrace admin user create ada@example.org --name Ada --data $data
stop_server

install_package "$this"
[ "$(millrace version)" != "$before" ] || fail "the upgrade left $before"
start_server --data $data --listen 127.0.0.1:0
has_ada "after the upgrade"
stop_server

# An earlier program refuses a database that it does not know, and changes nothing in it.
install_package "$earlier"
is "$(millrace version)" "$before" "after going back"
if ! millrace migrate --data $data >/said 2>&1; then
	grep -q "newer than this program knows" /said || fail "going back: $(cat /said)"
fi
install_package "$this"
start_server --data $data --listen 127.0.0.1:0
has_ada "after going back and forth"
stop_server
echo "all is well"
