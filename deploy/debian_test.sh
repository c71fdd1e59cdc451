#!/bin/bash
# As root, in a mount namespace of its own: puts a writable layer over the system, and in
# there installs, upgrades, removes and purges the package.
set -euo pipefail

if [ $# = 1 ]; then
	layer=$(mktemp -d)
	mount -t tmpfs tmpfs "$layer"
	mkdir "$layer"/{upper,work,root}
	mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
	mount -t proc proc "$layer/root/proc"
	mount --bind /dev "$layer/root/dev"
	cp "$1" "$layer/root/millrace.deb"
	cp "$0" "$layer/root/steps"
	exec chroot "$layer/root" /bin/bash /steps </dev/null
fi

fail() { echo "$*"; exit 1; }
is() { [ "$1" = "$2" ] || fail "$3: $1, not $2"; }
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
rm -rf /usr/bin/millrace /etc/millrace /var/lib/millrace
userdel millrace 2>/dev/null || true

rm -f /etc/dpkg/dpkg.cfg.d/* # on small systems it leaves out manuals
# What is not on this machine is not what is tested.
install="dpkg --force-depends --install /millrace.deb"
conf=/etc/millrace/millrace.conf
$install
is "$(stat -c %U:%a /var/lib/millrace)" millrace:700 "the data folder"
is "$(stat -c %U:%a $conf)" millrace:600 "the settings"
grep -q nologin <(getent passwd millrace) || fail "millrace can log in"
systemd-analyze verify --man=no /usr/lib/systemd/system/millrace.service
millrace version
/usr/lib/millrace/uv --version
grep -q "^warning  environments of packages: .*uv (pip" <(PATH=/usr/bin:/bin millrace admin doctor --config $conf) && fail "the server does not find uv"
grep -q '^.TH MILLRACE 1' <(zcat /usr/share/man/man1/millrace.1.gz) || fail "no manual page"

# The server starts on what the package wrote.
setpriv --reuid millrace --regid millrace --clear-groups millrace serve --config $conf --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 >/said 2>&1 &
server=$!
until grep -q "is running at" /said; do
	kill -0 $server 2>/dev/null && [ $SECONDS -lt 120 ] || fail "the server does not run: $(cat /said)"
	sleep 0.1
done
kill $server
wait $server || fail "the server ended with $?: $(cat /said)"

echo "# mine" >>$conf
chown root:root $conf # as whoever wrote it again
$install
grep -qx "# mine" $conf || fail "an upgrade changed the settings"
is "$(stat -c %U $conf)" millrace "whose settings they are after an upgrade"
dpkg --remove millrace
[ ! -e /usr/bin/millrace ] || fail "the program is still there"
grep -qx "# mine" $conf || fail "removing it removed the settings"
$install
echo "secret-key = without which nothing is read" >>$conf
dpkg --purge millrace
grep -q "^secret-key" $conf || fail "purging it removed the only copy of a key"

sed -i /^secret-key/d $conf
$install
dpkg --purge millrace
[ ! -e /etc/millrace ] || fail "purging it left the settings"
[ -e /var/lib/millrace/millrace.db ] || fail "purging it deleted what people made"
echo "all is well"
