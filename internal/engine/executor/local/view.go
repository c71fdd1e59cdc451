package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/stage"
)

const (
	taskUID = "1000"

	smallTmpfs = 16 << 20 // bytes of /run
	sharedMem  = 1 << 30  // bytes of /dev/shm where no memory is set
)

// view is what one command sees of the machine.
type view struct {
	box    box
	spec   executor.Spec
	launch *shim.Launch
}

// show is the path under which the sandbox finds something. A task's own user
// cannot reach into the server's folder, so the shim mounts it under another path first.
func (v view) show(from, name string) string {
	if v.box.stage == "" {
		return from
	}
	v.launch.Stage.Parts = append(v.launch.Stage.Parts, stage.Part{Name: name, From: from})
	return filepath.Join(v.box.stage, name)
}

// options build the sandbox: an empty root, and then only what is needed.
func (v view) options(devices []int) []string {
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--uid", taskUID, "--gid", taskUID, "--hostname", "millrace",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--seccomp", strconv.Itoa(shim.FilterFD),
		"--as-pid-1", "--clearenv", "--setenv", "GOMAXPROCS", "1",
	}
	if v.box.noNestedNamespaces {
		args = append(args, "--disable-userns")
	}
	if v.box.stage != "" {
		v.launch.Stage = &stage.Stage{Folder: v.box.stage}
	}
	if !v.spec.Network {
		args = append(args, "--unshare-net")
	}
	args = append(args, v.root()...)
	// For bubblewrap to mount terminals, the task's user is root of a user namespace,
	// and so might change settings of the kernel for its own namespaces.
	args = append(args, "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev")
	args = append(args, v.fresh()...)
	args = append(args, v.devices(devices)...)
	args = append(args, v.folders()...)
	return append(args, "--remount-ro", "/", "--chdir", workdir)
}

// root is the programs: the host's, or those of an image.
func (v view) root() []string {
	if v.spec.Root == "" {
		args := programs("/", hostNames, "/")
		args = append(args, "--ro-bind", v.show(v.box.etc, "etc"), "/etc", "--dir", "/home", "--dir", "/var")
		return append(append(args, "--symlink", "/tmp", "/var/tmp"), v.names()...)
	}
	return append(programs(v.spec.Root, imageNames(v.spec.Root), v.show(v.spec.Root, "root")), v.names()...)
}

// hostNames are the folders of the host that hold its programs; imageNames are
// those of an image, but for what a sandbox has of its own.
var hostNames = []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}

func imageNames(root string) (names []string) {
	entries, _ := os.ReadDir(root)
	for _, entry := range entries {
		if own := []string{"proc", "dev", "sys", "run", "tmp", workdir[1:], inputs[1:]}; !slices.Contains(own, entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// programs shows folders of a root, which is seen at another place.
func programs(root string, names []string, seen string) []string {
	var args []string
	for _, name := range names {
		if target, err := os.Readlink(filepath.Join(root, name)); err == nil {
			args = append(args, "--symlink", target, "/"+name)
			continue
		}
		args = append(args, "--ro-bind-try", filepath.Join(seen, name), "/"+name)
	}
	return args
}

// names lets a command that may use the network look up names. The mount needs
// a file to cover, which an image may not have, or may have behind a link that
// leads to another place.
func (v view) names() []string {
	const file = "/etc/resolv.conf"
	etc := filepath.Join(v.spec.Root, "etc")
	if v.spec.Root == "" {
		etc = v.box.etc
	}
	source, err := filepath.EvalSymlinks(file)
	folder, ferr := os.Lstat(etc)
	covered, cerr := os.Lstat(filepath.Join(etc, filepath.Base(file)))
	if !v.spec.Network || errors.Join(err, ferr, cerr) != nil || !folder.IsDir() || !covered.Mode().IsRegular() {
		return nil
	}
	return []string{"--ro-bind", source, file}
}

// fresh are folders that every command finds empty: on the host, sockets of
// its services are in /run.
func (v view) fresh() []string {
	shared := v.spec.MemoryBytes
	if shared == 0 {
		shared = sharedMem
	}
	return []string{
		"--size", strconv.FormatInt(shared, 10), "--tmpfs", "/dev/shm",
		"--size", strconv.Itoa(smallTmpfs), "--tmpfs", "/run",
	}
}

func (v view) devices(devices []int) []string {
	if len(devices) == 0 {
		return []string{"--remount-ro", "/dev"}
	}
	var args []string
	for _, name := range deviceNames(devices) {
		args = append(args, "--dev-bind-try", "/dev/"+name, "/dev/"+name)
	}
	return append(args, "--remount-ro", "/dev")
}

// deviceNames are the files of GPUs in /dev.
func deviceNames(devices []int) []string {
	if len(devices) == 0 {
		return nil
	}
	names := []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}
	for _, device := range devices {
		names = append(names, "nvidia"+strconv.Itoa(device))
	}
	return names
}

// folders are the attempt's own. Its /tmp is on disk, where large temporary
// files belong, and counts as disk.
func (v view) folders() []string {
	own := v.spec.Places()
	args := []string{"--bind", v.show(own.Temp, "tmp"), "/tmp", "--bind", v.show(own.Work, "work"), workdir}
	if v.spec.Staged {
		args = append(args, "--ro-bind", v.show(own.Inputs, "in"), inputs)
	}
	if v.spec.Environment != "" {
		args = append(args, "--ro-bind", v.show(v.spec.Environment, "environment"), environmentFolder)
	}
	return args
}
