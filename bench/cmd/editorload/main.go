// Editorload lets people type in editor rooms and measures what comes to the
// others. It speaks the y-websocket protocol, and Hocuspocus' variant of it.
// A line on stdout is the result.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"
)

var (
	people     = flag.Int("people", 2, "in each room")
	length     = flag.Duration("for", 5*time.Second, "how long they type")
	rate       = flag.Float64("rate", 0, "changes a second of each; 0: as soon as the neighbour has seen the last ones")
	window     = flag.Int("window", 4, "without a rate: changes on their way")
	hocuspocus = flag.Bool("hocuspocus", false, "speak Hocuspocus' protocol; the document is the fragment of a URL")
)

// A change appends a mark to the person's own text: M, who, when, and a
// semicolon. Marks are found in whatever messages the server makes of them.
const markSize = 1 + 4 + 12 + 1

var begun = time.Now()

// person is one client.
type person struct {
	index    int
	name     string // the document's, for Hocuspocus
	ws       *websocket.Conn
	client   uint64
	clock    uint64
	free     chan struct{} // a change may be sent
	next     *person       // who watches this one's changes
	before   *person
	relays   int
	took     []float64 // ms
	synced   chan struct{}
	measured *atomic.Bool
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("editorload: ")
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(urls []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	all := make([]*person, len(urls)**people)
	var measured atomic.Bool
	var listening sync.WaitGroup
	var opening errgroup.Group
	opening.SetLimit(20)
	for r, url := range urls {
		room := all[r**people:][:*people]
		opening.Go(func() (err error) {
			for i := range room {
				if room[i], err = enter(ctx, url, r**people+i, &measured); err != nil {
					return err
				}
			}
			for i, p := range room {
				p.next, p.before = room[(i+1)%len(room)], room[(i+len(room)-1)%len(room)]
			}
			for _, p := range room {
				listening.Go(func() { p.listen(ctx) })
			}
			return nil
		})
	}
	if err := opening.Wait(); err != nil {
		return err
	}
	for _, p := range all {
		select {
		case <-p.synced:
		case <-time.After(20 * time.Second):
			return fmt.Errorf("person %d was never synced", p.index)
		}
	}
	var typing sync.WaitGroup
	stop, stopTyping := context.WithCancel(ctx)
	for _, p := range all {
		typing.Go(func() { p.write(stop) })
	}
	time.Sleep(500 * time.Millisecond) // until everything is warm
	measured.Store(true)
	from, cpu := time.Now(), used()
	time.Sleep(*length)
	measured.Store(false)
	took, load := time.Since(from), used()-cpu
	stopTyping()
	typing.Wait()
	cancel()
	listening.Wait()
	return report(all, took, load)
}

func report(all []*person, took, load time.Duration) error {
	relays, times := 0, []float64{}
	for _, p := range all {
		relays += p.relays
		times = append(times, p.took...)
	}
	slices.Sort(times)
	at := func(q float64) float64 {
		if len(times) == 0 {
			return math.NaN()
		}
		return times[int(q*float64(len(times)-1))]
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]float64{
		"relays": float64(relays), "relays_s": float64(relays) / took.Seconds(), "p50_ms": at(0.5), "p99_ms": at(0.99),
		"load_cpu_pct": 100 * load.Seconds() / took.Seconds(),
	})
}

func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func enter(ctx context.Context, url string, index int, measured *atomic.Bool) (*person, error) {
	address, name, _ := strings.Cut(url, "#")
	ws, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(64 << 20)
	p := &person{
		index: index, name: name, ws: ws, client: uint64(1_000_000 + index), free: make(chan struct{}, 1<<16),
		synced: make(chan struct{}), measured: measured,
	}
	for range *window {
		p.free <- struct{}{}
	}
	if *hocuspocus {
		p.send(ctx, []byte{2, 0, 1, 't'}) // a token, whatever it is
	}
	p.send(ctx, []byte{0, 0, 1, 0}) // what is there?
	return p, nil
}

// dial tries again, as browsers do, when the server is busy.
func dial(ctx context.Context, address string) (*websocket.Conn, error) {
	for pause := time.Second; ; pause *= 2 {
		ws, answer, err := websocket.Dial(ctx, address, nil)
		if err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable || pause > time.Minute {
			return ws, err
		}
		time.Sleep(pause)
	}
}

func (p *person) send(ctx context.Context, body []byte) {
	if *hocuspocus {
		body = append(text(nil, p.name), body...)
	}
	if err := p.ws.Write(ctx, websocket.MessageBinary, body); err != nil && ctx.Err() == nil {
		log.Fatalf("person %d cannot write: %v", p.index, err)
	}
}

func text(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// change is the next update of this person: a mark at the end of their text,
// and at first the text itself.
func (p *person) change() []byte {
	mark := fmt.Sprintf("M%04x%012x;", p.index, time.Since(begun).Microseconds())
	u, n := []byte{}, uint64(1)
	clock := p.clock
	if clock == 0 {
		n = 2
		u = append(u, 0x27, 1) // a type under a key of a root
		u = text(u, "extra")
		u = text(u, fmt.Sprintf("c%d", p.index))
		u = append(u, 2, 0x04, 0) // a text; and a string in it
		u = binary.AppendUvarint(u, p.client)
		u = binary.AppendUvarint(u, 0)
		p.clock = 1
	} else {
		u = append(u, 0x84) // a string, after the last one
		u = binary.AppendUvarint(u, p.client)
		u = binary.AppendUvarint(u, clock-1)
	}
	u = text(u, mark)
	p.clock += markSize
	head := binary.AppendUvarint([]byte{1}, n)
	head = binary.AppendUvarint(head, p.client)
	head = binary.AppendUvarint(head, clock)
	return append(append(head, u...), 0)
}

func (p *person) write(ctx context.Context) {
	var tick <-chan time.Time
	if *rate > 0 {
		// Not all at once.
		time.Sleep(time.Duration(float64(p.index%50) / 50 / *rate * float64(time.Second)))
		t := time.NewTicker(time.Duration(float64(time.Second) / *rate))
		defer t.Stop()
		tick = t.C
	}
	for {
		if tick != nil {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
		} else {
			select {
			case <-ctx.Done():
				return
			case <-p.free:
			}
		}
		u := p.change()
		// A write that is cut short takes the connection with it.
		p.send(context.WithoutCancel(ctx), append(binary.AppendUvarint([]byte{0, 2}, uint64(len(u))), u...))
	}
}

func (p *person) listen(ctx context.Context) {
	defer p.ws.CloseNow()
	for {
		_, frame, err := p.ws.Read(ctx)
		if err != nil {
			if ctx.Err() == nil {
				log.Fatalf("person %d was cut off: %v", p.index, err)
			}
			return
		}
		p.hear(ctx, frame)
	}
}

func (p *person) hear(ctx context.Context, frame []byte) {
	body := frame
	if *hocuspocus {
		n, size := binary.Uvarint(body)
		body = body[size+int(n):]
	}
	if len(body) < 2 || body[0] != 0 && body[0] != 4 {
		return
	}
	switch body[1] {
	case 0:
		p.send(ctx, []byte{0, 1, 2, 0, 0}) // nothing that you lack
	case 1:
		select {
		case <-p.synced:
		default:
			close(p.synced)
		}
	case 2:
		p.marks(body)
	}
}

// marks counts the changes of others in a message.
func (p *person) marks(body []byte) {
	now := time.Since(begun).Microseconds()
	for {
		i := bytes.IndexByte(body, 'M')
		if i < 0 || len(body)-i < markSize {
			return
		}
		mark := body[i : i+markSize]
		body = body[i+1:]
		who, err1 := strconv.ParseUint(string(mark[1:5]), 16, 32)
		at, err2 := strconv.ParseInt(string(mark[5:17]), 16, 64)
		if err1 != nil || err2 != nil || mark[17] != ';' || int(who) == p.index {
			continue
		}
		if p.measured.Load() {
			p.relays++
			p.took = append(p.took, float64(now-at)/1000)
		}
		if int(who) == p.before.index && *rate == 0 {
			select {
			case p.before.free <- struct{}{}:
			default:
			}
		}
	}
}
