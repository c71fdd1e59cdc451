#!/bin/bash
# Installs, upgrades, removes and purges a package, where that may be done.
. /packages_lib
package=$1

profile_takes() {
	printf '#!/bin/sh\nexit %s\n' "$1" >/usr/sbin/apparmor_parser
	chmod 755 /usr/sbin/apparmor_parser
}
# The parser of this machine may be older than user namespaces.
if [ -e /usr/sbin/apparmor_parser ]; then
	parser=$(mktemp)
	cp /usr/sbin/apparmor_parser "$parser"
	chmod 755 "$parser"
fi
mkdir -p /etc/apparmor.d
profile_takes 1

install_package "$package"
is "$(stat -c %U:%a /var/lib/millrace)" millrace:700 "the data folder"
is "$(stat -c %U:%a $conf)" millrace:600 "the settings"
grep -q nologin <(getent passwd millrace) || fail "millrace can log in"
systemd-analyze verify --man=no /usr/lib/systemd/system/millrace.service
millrace version
/usr/lib/millrace/uv --version
grep -q "^warning  environments of packages: .*uv (pip" <(PATH=/usr/bin:/bin millrace admin doctor --config $conf) && fail "the server does not find uv"
grep -q '^.TH MILLRACE 1' <(zcat /usr/share/man/man1/millrace.1.gz) || fail "no manual page"
grep -q '^# Installing' /usr/share/doc/millrace/docs/operating/installing.md || fail "no documentation"
grep -q '^# Runs' /usr/share/doc/millrace/docs/runs.md || fail "no documentation"
grep -q millrace /usr/share/bash-completion/completions/millrace || fail "no completion"
[ ! -e /etc/apparmor.d/millrace ] || fail "AppArmor has a profile that it does not take"
if [ -n "${parser:-}" ]; then
	"$parser" --skip-kernel-load --skip-cache /usr/share/millrace/apparmor ||
		grep -v 'abi/4.0\|userns,' /usr/share/millrace/apparmor | "$parser" --skip-kernel-load --skip-cache || fail "no AppArmor takes the profile"
fi

# The server starts on what the package wrote.
start_server --config $conf --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0
stop_server

echo "# mine" >>$conf
chown root:root $conf # as whoever wrote it again
profile_takes 0
install_package "$package"
grep -qx "# mine" $conf || fail "an upgrade changed the settings"
is "$(stat -c %U $conf)" millrace "whose settings they are after an upgrade"
grep -q "^profile millrace /usr/bin/millrace " /etc/apparmor.d/millrace || fail "AppArmor has no profile"
remove_package "$package"
[ ! -e /usr/bin/millrace ] || fail "the program is still there"
[ ! -e /etc/apparmor.d/millrace ] || fail "the profile is still there"
grep -qx "# mine" $conf || fail "removing it removed the settings"
[ -e /var/lib/millrace/millrace.db ] || fail "removing it deleted what people made"

if [[ $package == *.deb ]]; then
	install_package "$package"
	echo "secret-key = without which nothing is read" >>$conf
	dpkg --purge millrace
	grep -q "^secret-key" $conf || fail "purging it removed the only copy of a key"

	sed -i /^secret-key/d $conf
	install_package "$package"
	dpkg --purge millrace
	[ ! -e /etc/millrace ] || fail "purging it left the settings"
	[ -e /var/lib/millrace/millrace.db ] || fail "purging it deleted what people made"
fi
echo "all is well"
