#!/bin/sh
# Purging removes the settings, unless a key is in them without which nobody reads
# the secrets in the database. What people made stays, with the user it belongs to:
# nobody expects a package manager to delete results. rpm has no purging: it says that no
# version is left, and the settings stay.
set -e

conf=/etc/millrace/millrace.conf
case "$1" in
remove | purge | 0)
	if [ -e /etc/apparmor.d/millrace ]; then
		apparmor_parser --remove /etc/apparmor.d/millrace 2>/dev/null || true
		rm -f /etc/apparmor.d/millrace
	fi
	;;
esac
if [ "$1" = purge ]; then
	if [ -e $conf ] && grep -q '^[[:space:]]*secret-key[[:space:]]*=[[:space:]]*[^[:space:]]' $conf; then
		echo "millrace: $conf is still there: without its secret-key the database cannot be read in full"
	else
		rm -f $conf
	fi
	if [ -d /etc/millrace ]; then
		rmdir --ignore-fail-on-non-empty /etc/millrace
	fi
	rm -f /etc/systemd/system/multi-user.target.wants/millrace.service /etc/systemd/system/sockets.target.wants/millrace.socket /etc/systemd/system/timers.target.wants/millrace-backup.timer
	if [ -d /var/lib/millrace ]; then
		echo "millrace: /var/lib/millrace and the user millrace are still there; delete them if nobody needs them"
	fi
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
