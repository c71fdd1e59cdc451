#   ./run.sh          in bubblewrap; or, where the step names an image, with it
#   ./run.sh HOW      HOW is bwrap, podman, docker, apptainer, singularity or plain
# The working folder is emptied first: work/ is what the step makes.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
how=${1:-}

note() { echo "run.sh: $*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

if [ -z "$how" ] && [ -n "$image" ]; then
  for tool in podman docker apptainer singularity; do
    if has "$tool"; then
      how=$tool
      break
    fi
  done
  if [ -z "$how" ]; then
    note "warning: the step ran in the image $image, and there is no podman, docker or apptainer here."
    note "warning: it is done with the programs of this machine, without a sandbox, as you."
    how=plain
  fi
elif [ -z "$how" ]; then
  if has bwrap && bwrap --unshare-all --ro-bind / / true 2>/dev/null; then
    how=bwrap
  else
    note "warning: there is no bubblewrap that works here: the step is done without a sandbox, as you."
    how=plain
  fi
fi

rm -rf "$here/work" "$here/tmp"
mkdir -p "$here/work" "$here/tmp" "$here/in"

case $how in
bwrap)
  exec bwrap --unshare-all --die-with-parent --new-session --clearenv \
    --setenv PATH /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --setenv HOME /tmp --setenv TMPDIR /tmp \
    --ro-bind /usr /usr --ro-bind-try /bin /bin --ro-bind-try /lib /lib --ro-bind-try /lib64 /lib64 --ro-bind-try /sbin /sbin \
    --ro-bind-try /etc/alternatives /etc/alternatives --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache \
    --ro-bind-try /etc/passwd /etc/passwd --ro-bind-try /etc/group /etc/group \
    --proc /proc --dev /dev --tmpfs /tmp \
    --ro-bind "$here" "$here" --bind "$here/work" "$here/work" --bind "$here/tmp" "$here/tmp" \
    --chdir "$here/work" /bin/sh "$here/start.sh"
  ;;
podman | docker)
  exec "$how" run --rm --network none --volume "$here:$here" --workdir "$here/work" --entrypoint /bin/sh "$image" "$here/start.sh"
  ;;
apptainer | singularity)
  exec "$how" exec --cleanenv --contain --bind "$here" --pwd "$here/work" "docker://$image" /bin/sh "$here/start.sh"
  ;;
plain)
  cd "$here/work"
  exec env -i PATH="$PATH" HOME="$here/tmp" TMPDIR="$here/tmp" /bin/sh "$here/start.sh"
  ;;
*)
  note "say bwrap, podman, docker, apptainer, singularity or plain"
  exit 2
  ;;
esac
