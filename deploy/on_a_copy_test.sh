#!/bin/bash
# As root, in a mount namespace of its own: puts a writable layer over the system, and in
# there runs a script, with packages as its arguments.
set -euo pipefail

cd "$(dirname "$0")"
script=$1
shift
layer=$(mktemp -d)
mount -t tmpfs tmpfs "$layer"
mkdir "$layer"/{upper,work,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
mount -t proc proc "$layer/root/proc"
mount --bind /dev "$layer/root/dev"
packages=()
for package in "$@"; do
	mkdir "$layer/root/package${#packages[@]}"
	cp "$package" "$layer/root/package${#packages[@]}"
	packages+=("/package${#packages[@]}/${package##*/}")
done
cp "$script" "$layer/root/steps"
cp packages_lib_test.sh "$layer/root/packages_lib"
exec chroot "$layer/root" /bin/bash /steps "${packages[@]}" </dev/null
