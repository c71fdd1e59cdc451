#!/bin/bash
# In a mount namespace of its own: puts a writable layer over the system, and in there
# installs, upgrades, removes and purges the package.
set -euo pipefail

layer=$(mktemp -d)
mount -t tmpfs tmpfs "$layer"
mkdir "$layer"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
mount -t proc proc "$layer/root/proc"
mount --bind /dev "$layer/root/dev"
cp "$1" "$layer/root/millrace.deb"

chroot "$layer/root" /bin/bash -euo pipefail <<'STEPS'
fail() { echo "$*"; exit 1; }
is() { [ "$1" = "$2" ] || fail "$3: $1, not $2"; }
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
rm -rf /usr/bin/millrace /etc/millrace /var/lib/millrace
userdel millrace 2>/dev/null || true

rm -f /etc/dpkg/dpkg.cfg.d/* # on small systems it leaves out manuals
# What is not on this machine is not what is tested.
install="dpkg --force-depends --install /millrace.deb"
$install
is "$(stat -c %U:%a /var/lib/millrace)" millrace:700 "the data folder"
is "$(stat -c %U:%a /etc/millrace/millrace.conf)" millrace:600 "the settings"
grep -q nologin <(getent passwd millrace) || fail "millrace can log in"
systemd-analyze verify --man=no /usr/lib/systemd/system/millrace.service
millrace version
grep -q '^.TH MILLRACE 1' <(zcat /usr/share/man/man1/millrace.1.gz) || fail "no manual page"
# The server starts on what the package wrote.
coproc SERVER { exec setpriv --reuid millrace --regid millrace --clear-groups millrace serve --config /etc/millrace/millrace.conf --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0; }
while read -r line <&"${SERVER[0]}"; do
	if [[ $line == *"is running at"* ]]; then running=yes; break; fi
done
is "${running:-}" yes "the server runs"
kill "$SERVER_PID"
wait "$SERVER_PID"

echo "# mine" >>/etc/millrace/millrace.conf
$install
grep -qx "# mine" /etc/millrace/millrace.conf || fail "an upgrade changed the settings"
dpkg --remove millrace
[ ! -e /usr/bin/millrace ] || fail "the program is still there"
grep -qx "# mine" /etc/millrace/millrace.conf || fail "removing it removed the settings"
dpkg --purge millrace
[ ! -e /etc/millrace ] || fail "purging it left the settings"
[ -e /var/lib/millrace/millrace.db ] || fail "purging it deleted what people made"
STEPS
echo "all is well"
