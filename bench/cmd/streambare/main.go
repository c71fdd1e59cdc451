// Streambare is the floor of a stream of events: net/http with a goroutine per
// client, and nothing it could leave out. It makes events by itself, each on
// disk before anybody hears of it, and tells everybody the newest of them, at
// most every so often.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type event struct {
	Seq int       `json:"seq"`
	At  time.Time `json:"at"`
}

// fan is who listens, and what has happened.
type fan struct {
	file    *os.File
	padding string

	mu      sync.Mutex
	events  []event
	clients map[chan []byte]bool
	moved   chan struct{}
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("streambare: ")
	listen := flag.String("listen", "127.0.0.1:0", "address")
	file := flag.String("log", "events.log", "where the events are kept")
	rate := flag.Float64("rate", 10, "moments a second with something new")
	pause := flag.Duration("pause", 0, "between two frames to a client")
	size := flag.Int("size", 480, "bytes of a frame, about")
	flag.Parse()

	f, err := os.Create(*file)
	if err != nil {
		log.Fatal(err)
	}
	fan := &fan{file: f, padding: strings.Repeat("x", *size), clients: map[chan []byte]bool{}, moved: make(chan struct{}, 1)}
	go fan.happen(*rate)
	go fan.tell(*pause)
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /stream", fan.stream)
	http.HandleFunc("GET /events", fan.list)
	log.Fatal(http.ListenAndServe(*listen, nil))
}

// happen makes events.
func (f *fan) happen(rate float64) {
	for range time.Tick(time.Duration(float64(time.Second) / rate)) {
		e := event{len(f.events) + 1, time.Now()}
		if _, err := fmt.Fprintf(f.file, "%d %d\n", e.Seq, e.At.UnixMicro()); err != nil {
			log.Fatal(err)
		}
		if err := f.file.Sync(); err != nil {
			log.Fatal(err)
		}
		f.mu.Lock()
		f.events = append(f.events, e)
		f.mu.Unlock()
		select {
		case f.moved <- struct{}{}:
		default:
		}
	}
}

// tell passes the newest on.
func (f *fan) tell(pause time.Duration) {
	for range f.moved {
		f.mu.Lock()
		frame := fmt.Appendf(nil, "id: %[1]d\ndata: {\"type\":\"progress\",\"seq\":%[1]d,\"padding\":%[2]q}\n\n", len(f.events), f.padding)
		for c := range f.clients {
			select {
			case c <- frame:
			default: // it does not keep up
			}
		}
		f.mu.Unlock()
		time.Sleep(pause)
	}
}

func (f *fan) stream(w http.ResponseWriter, r *http.Request) {
	frames := make(chan []byte, 16)
	f.mu.Lock()
	f.clients[frames] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.clients, frames)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for err := out.Flush(); err == nil; err = out.Flush() {
		select {
		case <-r.Context().Done():
			return
		case frame := <-frames:
			if _, err := w.Write(frame); err != nil {
				return
			}
		}
	}
}

// list answers as Millrace does.
func (f *fan) list(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"events": f.events}})
}
