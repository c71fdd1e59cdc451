#!/bin/sh
# Before removing: end the service. It stays enabled, so that it starts when the
# package comes back. An upgrade restarts it afterwards instead, so that its tasks
# go on. dpkg says "remove", and rpm that no version is left.
set -e

case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl stop millrace-backup.timer millrace.socket millrace.service || echo "millrace: the service does not stop; systemctl status millrace says why" >&2
fi
