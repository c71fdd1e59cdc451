#!/bin/sh
# After installing: a user, a file of settings if there is none, the service. dpkg says
# "configure" and the version before, if any; rpm says how many versions are installed.
set -e

case "$1" in
configure) before=$2 ;;
1) before= ;;
[2-9]*) before=some ;;
*) exit 0 ;;
esac
conf=/etc/millrace/millrace.conf
if ! getent passwd millrace >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/millrace --no-create-home --shell /usr/sbin/nologin millrace
fi
if [ ! -e /var/lib/millrace ]; then
	install -d -m 700 -o millrace -g millrace /var/lib/millrace
fi
if [ ! -e $conf ]; then
	millrace admin init $conf >/dev/null
fi
if [ "$(stat -c %U:%G $conf)" = root:root ]; then
	chown millrace:millrace $conf
fi
# An AppArmor that does not know user namespaces does not restrict them, and would
# complain about the profile each time the machine starts.
if [ -d /etc/apparmor.d ] && apparmor_parser --skip-kernel-load --skip-cache /usr/share/millrace/apparmor >/dev/null 2>&1; then
	install -m 644 /usr/share/millrace/apparmor /etc/apparmor.d/millrace
	if aa-enabled --quiet 2>/dev/null; then
		apparmor_parser --replace /etc/apparmor.d/millrace || echo "millrace: AppArmor does not take /etc/apparmor.d/millrace" >&2
	fi
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if [ -z "$before" ]; then
		# Debian enables a new service, Fedora leaves that to whoever installs it.
		systemctl preset millrace.service || true
	fi
	# A service that does not start is no broken package. Who disabled it keeps it so.
	if systemctl --quiet is-enabled millrace.service; then
		what=restart
	else
		what=try-restart
	fi
	systemctl --no-block $what millrace.service || echo "millrace: the service does not start; systemctl status millrace says why" >&2
	# Removing the package stopped it.
	if systemctl --quiet is-enabled millrace-backup.timer; then
		systemctl start millrace-backup.timer || true
	fi
fi
