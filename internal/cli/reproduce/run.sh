#   ./run.sh          in bubblewrap; with the image that the step names; or, where
#                     it launches a pipeline, with the programs of this machine
#   ./run.sh HOW      HOW is bwrap, podman, docker, apptainer, singularity or plain
# The working folder is emptied first: work/ is what the step makes.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
how=${1:-}

note() { echo "run.sh: $*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# works tells whether a program can run the image, which it fetches for that. Another
# may be installed and have no daemon, or no right to start a container.
works() {
  case $1 in
  podman | docker) "$1" run --rm --network none --entrypoint /bin/sh "$image" -c : ;;
  apptainer | singularity) "$1" exec --cleanenv --contain "docker://$image" /bin/sh -c : ;;
  esac
}

if [ -n "$engine" ]; then
  if ! has "$engine"; then
    note "the step launches a pipeline with $engine: install it, so that $engine is in your PATH"
    exit 2
  fi
  if [ -z "$how" ]; then
    note "the step launches a pipeline: it is done with the programs of this machine, without a sandbox, as you."
    how=plain
  fi
elif [ -z "$how" ] && [ -n "$image" ]; then
  installed=
  for tool in podman docker apptainer singularity; do
    if has "$tool"; then
      installed="$installed $tool"
      if said=$(works "$tool" 2>&1 </dev/null); then
        how=$tool
        break
      fi
      note "$tool cannot run the image $image: $(printf '%s' "$said" | tail -n 1)"
    fi
  done
  if [ -z "$how" ] && [ -n "$installed" ]; then
    note "none of$installed can run the image. To use the programs of this machine in its place, as you and without a sandbox: ./run.sh plain"
    exit 2
  elif [ -z "$how" ]; then
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

# The code, at the commit that the run recorded; with your own git and its rights.
if [ -n "$commit" ] && [ ! -d "$here/source" ]; then
  rm -rf "$here/source.new"
  git init --quiet "$here/source.new"
  GIT_LFS_SKIP_SMUDGE=1 git -C "$here/source.new" fetch --quiet --depth 1 -- "$git" "$commit"
  GIT_LFS_SKIP_SMUDGE=1 git -C "$here/source.new" checkout --quiet FETCH_HEAD
  if [ -n "$submodules" ]; then
    git -C "$here/source.new" submodule --quiet update --init --recursive --depth 1
  fi
  mv "$here/source.new" "$here/source"
fi

# The software, by its lock: the same versions and hashes, from your own index.
paths=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
base=/usr
if [ -n "$python" ]; then
  if [ ! -e "$here/environment/done" ]; then
    rm -rf "$here/environment"
    if has uv; then
      uv venv --quiet --python "$python" "$here/environment"
      uv pip install --quiet --python "$here/environment/bin/python" --require-hashes --no-deps --only-binary :all: -r "$here/environment.lock"
    elif has "python$(echo "$python" | cut -d. -f1,2)"; then
      "python$(echo "$python" | cut -d. -f1,2)" -m venv "$here/environment"
      "$here/environment/bin/python" -m pip install --quiet --require-hashes --no-deps --only-binary :all: -r "$here/environment.lock"
    else
      note "the step needs Python $python: install uv (https://docs.astral.sh/uv), or that Python"
      exit 2
    fi
    : > "$here/environment/done"
  fi
  paths=$here/environment/bin:$paths
  base=$(dirname "$(dirname "$(readlink -f "$here/environment/bin/python")")")
fi

# Conda packages, by the same lock, from where you have their channels.
if [ -n "$conda" ]; then
  if [ ! -e "$here/environment/done" ]; then
    case $(uname -sm) in
    "Linux x86_64") machine=linux-64 ;;
    "Linux aarch64") machine=linux-aarch64 ;;
    *) machine=$(uname -sm) ;;
    esac
    if [ "$conda" != "$machine" ]; then
      note "the step has conda packages for $conda, and this machine is $machine"
      exit 2
    fi
    if [ -z "${CONDA_CHANNELS:-}" ] || ! has uv || ! has curl; then
      note "the step has conda packages: install curl and uv (https://docs.astral.sh/uv), and set"
      note "CONDA_CHANNELS to the address that their channels are below, such as https://conda.example.org"
      exit 2
    fi
    rm -rf "$here/environment"
    grep -v '^#' "$here/environment.lock" | while read -r file hash; do
      package=$here/packages/$file
      if [ ! -e "$package" ]; then
        mkdir -p "$(dirname "$package")"
        curl --fail --silent --show-error --location --output "$package.part" -- "${CONDA_CHANNELS%/}/$file"
        if ! echo "${hash#--hash=sha256:}  $package.part" | sha256sum --check --status; then
          note "$file is not the file that the lock names"
          exit 1
        fi
        mv "$package.part" "$package"
      fi
    done
    uv run --quiet --no-project --isolated --with py-rattler==0.28.0 python "$here/install.py"
    : > "$here/environment/done"
  fi
  paths=$here/environment/bin:$paths
fi

rm -rf "$here/work" "$here/tmp"
mkdir -p "$here/work" "$here/tmp" "$here/in"

case $how in
bwrap)
  exec bwrap --unshare-all --die-with-parent --new-session --clearenv \
    --setenv PATH "$paths" --setenv HOME /tmp --setenv TMPDIR /tmp ${conda:+--setenv CONDA_PREFIX "$here/environment"} \
    --ro-bind /usr /usr --ro-bind-try /bin /bin --ro-bind-try /lib /lib --ro-bind-try /lib64 /lib64 --ro-bind-try /sbin /sbin \
    --ro-bind-try /etc/alternatives /etc/alternatives --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache \
    --ro-bind-try /etc/passwd /etc/passwd --ro-bind-try /etc/group /etc/group \
    --proc /proc --dev /dev --tmpfs /tmp \
    --ro-bind "$base" "$base" --ro-bind "$here" "$here" --bind "$here/work" "$here/work" --bind "$here/tmp" "$here/tmp" \
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
  if [ -n "$engine" ]; then # engines have files of their own in your home folder
    exec env -i PATH="$here/bin:$PATH" ENGINE="$(command -v "$engine")" HOME="$HOME" ${JAVA_HOME:+JAVA_HOME="$JAVA_HOME"} TMPDIR="$here/tmp" /bin/sh "$here/start.sh"
  fi
  exec env -i PATH="${python:+$here/environment/bin:}${conda:+$here/environment/bin:}$PATH" ${conda:+CONDA_PREFIX="$here/environment"} HOME="$here/tmp" TMPDIR="$here/tmp" /bin/sh "$here/start.sh"
  ;;
*)
  note "say bwrap, podman, docker, apptainer, singularity or plain"
  exit 2
  ;;
esac
