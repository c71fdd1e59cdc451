package settingsfile

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/domain/spelling"
)

// otherVariables are not ours to refuse: those of tests, of measurements and of tasks, what
// the client, compose files and the development of the app read, and the addresses that
// Kubernetes tells pods of services whose name begins with millrace.
var otherVariables = regexp.MustCompile(`^MILLRACE_(TEST|BENCH|ATTEMPT)(_.*)?$|^MILLRACE_(SERVER|TOKEN|TEAM|HOST|IMAGE|WORKER_IMAGE|URL)$|^MILLRACE_(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)$`)

// Unknown refuses variables that look like settings and are none: a misspelled one would
// silently keep its default.
func Unknown(app *kong.Application, environment []string) error {
	known := map[string]bool{}
	_ = kong.Visit(app.Node, func(part kong.Visitable, next kong.Next) error {
		if flag, is := part.(*kong.Flag); is {
			for _, name := range flag.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	names := slices.Sorted(maps.Keys(known))
	var errs []error
	for _, line := range environment {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "MILLRACE_") && !known[name] && !otherVariables.MatchString(name) {
			errs = append(errs, fmt.Errorf("there is no setting for the variable %s%s; remove it, or see millrace serve --help and the page /help/operating/settings of every server", name, spelling.DidYouMean(name, names)))
		}
	}
	return errors.Join(errs...)
}
