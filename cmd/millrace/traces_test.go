package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/millrace/millrace/internal/store/storetest"
)

// premises are where an installation keeps what it knows.
type premises struct {
	t       *testing.T
	args    []string
	folders []string      // of its servers
	pool    *sql.DB       // nil: the database is in the folder
	bucket  *minio.Client // nil: so are the objects
	name    string        // of the bucket
	prefix  string
	cluster string // a folder that a cluster sees; empty: tasks run beside their server
	shims   int    // that were looked at there
	shown   bool   // whether Slurm ever listed a job of ours
	pods    string // the folder of a Kubernetes; empty: tasks run elsewhere
	port    string // of the server there
}

// onPostgres are premises with their database elsewhere.
func onPostgres(t *testing.T) *premises {
	t.Helper()
	db := storetest.Postgres(t)
	p := &premises{t: t, args: []string{
		"--database-url", db, "--secret-key", storetest.SecretKey, "--public-urls", "http://millrace.example", "--sign-up", "open", "--sandbox", "none",
	}}
	var err error
	if p.pool, err = sql.Open("pgx", db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.pool.Close() })
	return p
}

// withBucket keeps their objects in a real one.
func (p *premises) withBucket() {
	t := p.t
	t.Helper()
	address := bucketAddress(t)
	p.prefix = fmt.Sprint("t", rand.Uint64(), "/")
	p.args = append(p.args, "--storage-url", address+"&prefix="+p.prefix)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := url.Parse(u.Query().Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	p.name = u.Host
	p.bucket, err = minio.New(endpoint.Host, &minio.Options{Creds: credentials.NewStaticV4(u.Query().Get("access-key"), u.Query().Get("secret-key"), "")})
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts a server in a folder of its own, or in the one it had.
func (p *premises) serve(folder string) *server {
	p.t.Helper()
	if p.pods != "" {
		var s *server
		s, p.port = onKubernetes(p.t, p.port, folder)
		return s
	}
	if p.cluster != "" {
		return onSlurm(p.t, p.cluster, append(p.args, "--data", folder)...)
	}
	return start(p.t, append(p.args, "--data", folder)...)
}

func (p *premises) folder() string {
	dir := p.t.TempDir()
	p.folders = append(p.folders, dir)
	return dir
}

func (p *premises) exec(statement string, args ...any) {
	p.t.Helper()
	if _, err := p.pool.Exec(statement, args...); err != nil {
		p.t.Fatal(err)
	}
}

// traces are the places that hold one of the words: files and their names,
// rows, objects and uploads by parts.
func (p *premises) traces(words ...string) (found []string) {
	p.t.Helper()
	look := func(where string, text []byte) {
		for _, word := range words {
			if bytes.Contains(text, []byte(word)) || bytes.Contains(text, []byte(hex.EncodeToString([]byte(word)))) {
				found = append(found, word+" in "+where)
			}
		}
	}
	for _, folder := range p.folders {
		p.files(folder, look)
	}
	if p.pool != nil {
		p.rows(look)
	}
	if p.bucket != nil {
		p.objects(look)
	}
	if p.cluster != "" {
		p.jobs(look)
	}
	if p.pods != "" {
		p.kubernetesObjects(look)
	}
	return found
}

// largestFile is more than any that is made here: a cluster also has the files of other
// tests, of gigabytes.
const largestFile = 256 << 20

func (p *premises) files(folder string, look func(where string, text []byte)) {
	p.t.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went away while we looked
		}
		text := []byte(strings.TrimPrefix(path, folder))
		if info, err := e.Info(); err == nil && info.Size() > largestFile {
			return nil
		}
		if e.Type().IsRegular() {
			more, err := os.ReadFile(path)
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			text = append(text, more...)
		}
		look(strings.TrimPrefix(path, folder), text)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// rows gives every row of every table as text; bytes are in hex.
func (p *premises) rows(look func(where string, text []byte)) {
	p.t.Helper()
	for _, table := range p.column(`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`) {
		for _, row := range p.column(`SELECT CAST(r AS TEXT) FROM ` + table + ` r`) {
			look("table "+table, []byte(row))
		}
	}
}

func (p *premises) column(query string, args ...any) (list []string) {
	p.t.Helper()
	rows, err := p.pool.Query(query, args...)
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			p.t.Fatal(err)
		}
		list = append(list, text)
	}
	if err := rows.Err(); err != nil {
		p.t.Fatal(err)
	}
	return list
}

// objects gives every object, and names every upload by parts.
func (p *premises) objects(look func(where string, text []byte)) {
	p.t.Helper()
	ctx := context.Background()
	for o := range p.bucket.ListObjects(ctx, p.name, minio.ListObjectsOptions{Prefix: p.prefix, Recursive: true}) {
		if o.Err != nil {
			p.t.Fatal(o.Err)
		}
		text := []byte(o.Key)
		if body, err := p.bucket.GetObject(ctx, p.name, o.Key, minio.GetObjectOptions{}); err == nil {
			more, _ := io.ReadAll(body) // it may go away while we look
			text = append(text, more...)
			body.Close()
		}
		look("object "+o.Key, text)
	}
	for u := range p.bucket.ListIncompleteUploads(ctx, p.name, p.prefix, true) {
		if u.Err != nil {
			p.t.Fatal(u.Err)
		}
		look("upload "+u.Key, []byte(u.Key))
	}
}

// stopAt holds the table that a statement changes. Reached waits until somebody
// is at that statement; let lets them go on.
func (p *premises) stopAt(statement, table string) (reached, let func()) {
	p.t.Helper()
	tx, err := p.pool.Begin()
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := tx.Exec(`LOCK TABLE ` + table + ` IN SHARE MODE`); err != nil {
		p.t.Fatal(err)
	}
	reached = func() {
		p.t.Helper()
		await(p.t, statement+" "+table, func() bool {
			return len(p.column(`SELECT 'x' FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'`,
				statement+" "+table+" ")) > 0
		})
	}
	return reached, func() { _ = tx.Rollback() }
}
