// Filebare is the floor for file transfer: net/http and the file system, and
// nothing it could leave out. An upload is hashed with SHA-256 and durable
// before it is answered; a download goes out with sendfile. Anyone may do
// either.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("filebare: ")
	listen := flag.String("listen", "127.0.0.1:9741", "address")
	dir := flag.String("dir", ".", "folder of the files")
	flag.Parse()

	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("PUT /files/{name}", func(w http.ResponseWriter, r *http.Request) {
		sum, err := receive(filepath.Join(*dir, filepath.Base(r.PathValue("name"))), r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("ETag", `"`+sum+`"`)
	})
	http.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, r *http.Request) {
		f, err := os.Open(filepath.Join(*dir, filepath.Base(r.PathValue("name"))))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", info.ModTime(), f)
	})
	http.HandleFunc("DELETE /files/{name}", func(w http.ResponseWriter, r *http.Request) {
		if err := os.Remove(filepath.Join(*dir, filepath.Base(r.PathValue("name")))); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
		}
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}

func receive(name string, body io.Reader) (sum string, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "receiving-")
	if err != nil {
		return "", err
	}
	sum, err = hashed(f, body)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return sum, os.Rename(f.Name(), name)
}

// hashed copies, and hashes each piece while the next one is read and written.
func hashed(w io.Writer, r io.Reader) (sum string, err error) {
	const pieces, size = 4, 256 << 10
	full, empty := make(chan []byte, pieces), make(chan []byte, pieces)
	for range pieces {
		empty <- make([]byte, size)
	}
	h := sha256.New()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for piece := range full {
			h.Write(piece)
			empty <- piece[:size]
		}
	}()
	for err == nil {
		piece := <-empty
		var n int
		n, err = io.ReadFull(r, piece)
		full <- piece[:n]
		if _, failed := w.Write(piece[:n]); failed != nil {
			err = failed
		}
	}
	close(full)
	<-done
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
