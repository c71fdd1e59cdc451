// Command sbom prints what a program is made of, as an SPDX document.
//
//	go run ./tools/sbom -name millrace -version v1.2.3 -lock web/package-lock.json bin/millrace
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/millrace/millrace/tools/spdx"
)

func main() {
	var p spdx.Program
	var seconds int64
	flag.StringVar(&p.Name, "name", "millrace", "name of the program")
	flag.StringVar(&p.Version, "version", "dev", "its version")
	flag.StringVar(&p.Lock, "lock", "", "package-lock.json of the web app inside")
	flag.Int64Var(&seconds, "time", 0, "when it was built, in seconds since 1970")
	flag.Parse()
	p.Path, p.Created = flag.Arg(0), time.Unix(seconds, 0)
	document, err := spdx.Of(p)
	if err == nil {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}
