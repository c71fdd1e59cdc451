package executors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/engine/executor/kubernetes"
)

// Named is one of the executors of a server.
type Named struct {
	Name     string
	Kind     string // local, slurm or kubernetes
	Capacity credits.Size
	Percent  int  // of the usual price
	Only     bool // the server has no other, and --executor names it
	Slurm    Slurm

	Kubernetes Kubernetes
}

// NoEnvironments is why tasks of this executor could use no environment.
func (x Named) NoEnvironments() string {
	if x.Kind == "kubernetes" {
		return kubernetes.NoEnvironments
	}
	return ""
}

// entry is an executor as a file has it.
type entry struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"`
	Capacity    string   `json:"capacity"`
	PriceFactor *float64 `json:"priceFactor"`
	Slurm       *struct {
		Slurm
		GiveUpAfter string `json:"giveUpAfter"`
	} `json:"slurm"`
	Kubernetes *struct {
		Kubernetes
		GiveUpAfter string `json:"giveUpAfter"`
	} `json:"kubernetes"`
}

const (
	maxExecutors   = 20
	maxPriceFactor = 100
	giveUpAfter    = 24 * time.Hour
)

var goodName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// Parse reads a file of executors, which are listed in order of preference.
func Parse(text []byte) ([]Named, error) {
	var entries []entry
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	err := strict.Decode(&entries)
	if _, more := strict.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("something follows it")
	}
	if err != nil {
		return nil, fmt.Errorf("it is not a list of executors: %w", err)
	}
	if len(entries) == 0 || len(entries) > maxExecutors {
		return nil, fmt.Errorf("it must have 1 to %d executors", maxExecutors)
	}
	var list []Named
	var errs []error
	taken := map[string]bool{}
	for _, e := range entries {
		x, err := e.read()
		// Attempts of two in one folder could not be told apart.
		name, folder := "name "+x.Name, "folder "+filepath.Clean(x.Slurm.SlurmFolder)
		if x.Kind == "kubernetes" { // they are told apart by their names
			folder = name
		}
		if err == nil && (taken[name] || taken[folder]) {
			err = errors.New("another executor has the same name or folder, or is local, too")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", e.Name, err))
			continue // what it would have been is not held against the others
		}
		taken[name], taken[folder] = true, true
		list = append(list, x)
	}
	return list, errors.Join(errs...)
}

func (e entry) read() (x Named, err error) {
	x = Named{Name: e.Name, Kind: e.Kind, Percent: 100}
	if !goodName.MatchString(e.Name) {
		return x, errors.New("`name` must be up to 32 small letters, digits and dashes, such as slurm-cpu")
	}
	if f := e.PriceFactor; f != nil {
		if !(*f >= 0.01 && *f <= maxPriceFactor) {
			return x, fmt.Errorf("`priceFactor` must be from 0.01 to %d", maxPriceFactor)
		}
		x.Percent = int(math.Round(*f * 100))
	}
	if x.Capacity, err = ParseCapacity(e.Capacity); err != nil {
		return x, err
	}
	switch {
	case e.Kind == "local" && e.Slurm == nil && e.Kubernetes == nil:
		return x, nil
	case e.Kind == "kubernetes" && e.Kubernetes != nil && e.Slurm == nil:
		x.Kubernetes = e.Kubernetes.Kubernetes
		if x.Kubernetes.KubernetesGiveUpAfter, err = parseGiveUpAfter(e.Kubernetes.GiveUpAfter); err != nil {
			return x, err
		}
		x.Kubernetes.KubernetesNamespace = cmp.Or(x.Kubernetes.KubernetesNamespace, "millrace")
		return x, x.Kubernetes.Check()
	case e.Kind != "slurm" || e.Slurm == nil || e.Kubernetes != nil:
		return x, errors.New("`kind` must be local, slurm with its settings under `slurm`, or kubernetes with those under `kubernetes`")
	}
	x.Slurm = e.Slurm.Slurm
	if x.Slurm.SlurmGiveUpAfter, err = parseGiveUpAfter(e.Slurm.GiveUpAfter); err != nil {
		return x, err
	}
	return x, x.Slurm.Check()
}

func parseGiveUpAfter(text string) (time.Duration, error) {
	if text == "" {
		return giveUpAfter, nil
	}
	after, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("`giveUpAfter` must be a time such as 24h")
	}
	return after, nil
}

var errCapacity = errors.New("--capacity is not such as vcpu=16,ramGb=64, with whole numbers from 1 on")

// ParseCapacity reads what runs may use at once; what is not named is the
// machine's.
func ParseCapacity(text string) (size credits.Size, err error) {
	if text == "" {
		return size, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1<<20 {
			return credits.Size{}, errCapacity
		}
		switch name {
		case "vcpu":
			size.VCPU = n
		case "ramGb":
			size.RAMGB = n
		default:
			return credits.Size{}, errCapacity
		}
	}
	return size, nil
}
