# What the scripts that test packages share.
set -euo pipefail

fail() { echo "$*"; exit 1; }
is() { [ "$1" = "$2" ] || fail "$3: $1, not $2"; }
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
conf=/etc/millrace/millrace.conf

# What is not on this machine is not what is tested, so nothing is asked for.
install_package() {
	case $1 in
	*.deb) dpkg --force-depends --install "$1" ;;
	*.rpm) rpm --upgrade --nodeps --force-debian --replacepkgs --oldpackage "$1" ;;
	esac
}
remove_package() {
	case $1 in
	*.deb) dpkg --remove millrace ;;
	*.rpm) rpm --erase --nodeps --force-debian millrace ;;
	esac
}

# start_server waits until the server runs, which says so in /said.
start_server() {
	setpriv --reuid millrace --regid millrace --clear-groups millrace serve "$@" >/said 2>&1 &
	server=$!
	until grep -q "is running at" /said; do
		kill -0 $server 2>/dev/null && [ $SECONDS -lt 240 ] || fail "the server does not run: $(cat /said)"
		sleep 0.1
	done
}
stop_server() {
	kill $server
	wait $server || fail "the server ended with $?: $(cat /said)"
}

# The machine has none of this before.
rm -rf /usr/bin/millrace /etc/millrace /var/lib/millrace
userdel millrace 2>/dev/null || true
rm -f /etc/dpkg/dpkg.cfg.d/* # on small systems it leaves out manuals
