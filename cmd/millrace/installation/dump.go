package installation

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
)

// Dump writes a PostgreSQL database to a file with pg_dump.
func Dump(ctx context.Context, database, file string) error {
	return postgresTool(ctx, database, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file="+file)
}

// loadDump loads such a file with pg_restore, all of it or nothing. Again replaces what an
// earlier attempt has loaded.
func loadDump(ctx context.Context, database, file string, again bool) error {
	args := []string{"--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"}
	if again {
		args = append(args, "--clean", "--if-exists")
	}
	return postgresTool(ctx, database, "pg_restore", append(args, file)...)
}

// postgresTool runs a program of PostgreSQL. The password goes by the environment, since
// everybody on the machine can read the arguments of a process.
func postgresTool(ctx context.Context, database, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s is missing: install the client programs of PostgreSQL, of the version of its server (apt-get install postgresql-client)", name)
	}
	u, err := url.Parse(database)
	if err != nil {
		return errors.New("--database-url is not an address such as postgres://user:password@host/database")
	}
	environment := os.Environ()
	if password, ok := u.User.Password(); ok {
		u.User = url.User(u.User.Username())
		environment = append(environment, "PGPASSWORD="+password)
	}
	if query := u.Query(); query.Has("password") {
		environment = append(environment, "PGPASSWORD="+query.Get("password"))
		query.Del("password")
		u.RawQuery = query.Encode()
	}
	c := exec.CommandContext(ctx, path, append([]string{"--dbname=" + u.String()}, args...)...)
	c.Env = environment
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.2000s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
